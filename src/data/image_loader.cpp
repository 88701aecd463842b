// ImageLoader: a queue of views, workers that decode them, and a cache that forgets the least
// recently used.
#include "data/image_loader.h"

#include <algorithm>
#include <atomic>
#include <list>
#include <new>
#include <optional>
#include <utility>

#include "base/worker_pool.h"
#include "data/mask_finder.h"
#include "device/trace.h"

namespace millrace {
namespace {

constexpr WaitSite kDecodeSite{WaitReason::Decode, "loader.decode"};

enum class Stage : uint8_t { Absent, Queued, Decoding, Ready, Failed };

struct Entry {
  Stage stage = Stage::Absent;
  bool wanted = false;                  // asked for and not yet taken: never evicted
  std::shared_ptr<const Image8> image;  // while cached
  std::weak_ptr<const Image8> lent;     // finds an evicted image that the consumer still holds
  Error error;
  std::list<uint32_t>::iterator in_order;  // while cached
};

// Jobs must not throw: running out of memory becomes the view's error.
Result<Image8> decode_view(const View& view, const std::array<float, 3>& background) {
  try {
    return load_view_image(view, background);
  } catch (const std::bad_alloc&) {
    return Error{
        ErrorCode::OutOfMemory,
        "no memory is left to decode " + view.image_path.string() +
            ". Train at a smaller size (-r 2), lower --image-cache-bytes, or free memory."};
  }
}

}  // namespace

struct ImageLoader::State {
  State(std::vector<View> all_views, const ImageLoaderOptions& given, WaitLedger& wait_ledger)
      : views(std::move(all_views)),
        options(given),
        ledger(wait_ledger),
        trace(wait_ledger.trace()),
        entries(views.size()) {
    if (trace == nullptr) return;
    for (int i = 0; i < n_threads(); ++i) idle_tracks.push_back(trace->add_track("loader"));
    std::reverse(idle_tracks.begin(), idle_tracks.end());  // the last is taken first
    for (const View& view : views) trace_names.push_back(trace->intern(view.name));
  }

  int n_threads() const { return std::max(1, options.n_threads); }

  /// Queues a view that is neither in memory nor on its way. Under `mutex`.
  void request(uint32_t view);
  /// The image if it is in memory. Under `mutex`.
  std::shared_ptr<const Image8> take(uint32_t view);
  void evict();
  void run_one();

  const std::vector<View> views;
  const ImageLoaderOptions options;
  WaitLedger& ledger;
  TraceRecorder* const trace;  // null unless a trace is wanted
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Entry> entries;
  std::vector<TraceTrack> idle_tracks;   // one for each thread that decodes nothing now
  std::vector<const char*> trace_names;  // of the views
  std::vector<uint32_t> queue;           // oldest first
  std::list<uint32_t> order;             // cached views, least recently used first
  // Shared with the images' deleters, which may run after the loader has gone.
  std::shared_ptr<std::atomic<uint64_t>> bytes = std::make_shared<std::atomic<uint64_t>>(0);
  std::optional<WorkerPool> pool;  // last: its threads use all of the above
};

void ImageLoader::State::request(uint32_t view) {
  Entry& entry = entries[view];
  entry.wanted = true;
  if (entry.stage != Stage::Absent) return;
  if (auto image = entry.lent.lock()) {
    entry.image = std::move(image);
    entry.stage = Stage::Ready;
    entry.in_order = order.insert(order.end(), view);
    return;
  }
  entry.stage = Stage::Queued;
  queue.push_back(view);
  pool->post([this] { run_one(); });
}

std::shared_ptr<const Image8> ImageLoader::State::take(uint32_t view) {
  Entry& entry = entries[view];
  if (entry.stage != Stage::Ready) return nullptr;
  entry.wanted = false;
  order.splice(order.end(), order, entry.in_order);
  std::shared_ptr<const Image8> image = entry.image;
  evict();
  return image;
}

/// Forgets images until the budget is kept. Images the consumer holds stay: forgetting frees
/// nothing.
void ImageLoader::State::evict() {
  for (auto it = order.begin(); it != order.end() && bytes->load() > options.cache_bytes;) {
    Entry& entry = entries[*it];
    if (entry.wanted || entry.image.use_count() > 1) {
      ++it;
      continue;
    }
    entry.image.reset();
    entry.stage = Stage::Absent;
    it = order.erase(it);
  }
}

/// Decodes the first view of the queue. On a worker thread.
void ImageLoader::State::run_one() {
  uint32_t view = 0;
  TraceTrack track = {};
  {
    std::lock_guard lock(mutex);
    if (queue.empty()) return;
    view = queue.front();
    queue.erase(queue.begin());
    entries[view].stage = Stage::Decoding;
    if (trace) {
      track = idle_tracks.back();
      idle_tracks.pop_back();
    }
  }
  const auto begin = TraceRecorder::Clock::now();
  if (options.artificial_delay_ms > 0) pause_worker(options.artificial_delay_ms);
  Result<Image8> decoded = decode_view(views[view], options.background);
  std::shared_ptr<const Image8> image;
  Error error;
  if (decoded) {
    const uint64_t n_bytes = decoded.value().bytes();
    bytes->fetch_add(n_bytes);
    image = std::shared_ptr<const Image8>(new Image8(std::move(decoded).value()),
                                          [counter = bytes, n_bytes](const Image8* held) {
                                            delete held;
                                            counter->fetch_sub(n_bytes);
                                          });
  } else {
    error = decoded.error();
  }
  if (trace) trace->span(track, trace_names[view], begin, TraceRecorder::Clock::now());
  {
    std::lock_guard lock(mutex);
    if (trace) idle_tracks.push_back(track);
    Entry& entry = entries[view];
    if (image) {
      entry.lent = image;
      entry.image = std::move(image);
      entry.stage = Stage::Ready;
      entry.in_order = order.insert(order.end(), view);
      evict();
    } else {
      entry.error = std::move(error);
      entry.stage = Stage::Failed;
    }
  }
  changed.notify_all();
}

ImageLoader::ImageLoader(std::vector<View> views, const ImageLoaderOptions& options,
                         WaitLedger& ledger)
    : state_(std::make_unique<State>(std::move(views), options, ledger)) {
  state_->pool.emplace(static_cast<size_t>(state_->n_threads()));
}

ImageLoader::~ImageLoader() = default;

void ImageLoader::prefetch(uint32_t view) {
  std::lock_guard lock(state_->mutex);
  state_->request(view);
}

std::shared_ptr<const Image8> ImageLoader::try_get(uint32_t view) {
  std::lock_guard lock(state_->mutex);
  state_->request(view);
  return state_->take(view);
}

Result<std::shared_ptr<const Image8>> ImageLoader::get_blocking(uint32_t view) {
  std::unique_lock lock(state_->mutex);
  state_->request(view);
  Entry& entry = state_->entries[view];
  if (entry.stage == Stage::Queued) {
    // Somebody waits for this one: it goes before what was only asked for in advance.
    auto& queue = state_->queue;
    queue.erase(std::find(queue.begin(), queue.end(), view));
    queue.insert(queue.begin(), view);
  }
  const auto is_done = [&] { return entry.stage == Stage::Ready || entry.stage == Stage::Failed; };
  state_->ledger.wait_blocking(lock, state_->changed, is_done, kDecodeSite);
  if (entry.stage == Stage::Failed) return entry.error;
  return state_->take(view);
}

size_t ImageLoader::undecoded() const {
  std::lock_guard lock(state_->mutex);
  return static_cast<size_t>(
      std::count_if(state_->entries.begin(), state_->entries.end(), [](const Entry& entry) {
        return entry.stage == Stage::Queued || entry.stage == Stage::Decoding;
      }));
}

uint64_t ImageLoader::cached_bytes() const { return state_->bytes->load(); }

uint64_t image_loader_bytes(const std::vector<View>& views, const ImageLoaderOptions& options,
                            uint32_t n_ahead) {
  uint64_t image = 0, total = 0, decode = 0;
  for (const View& view : views) {
    const uint64_t bytes = n_target_planes(view) * view.camera.width * view.camera.height;
    image = std::max(image, bytes);
    total += bytes;
    decode = std::max(decode, load_view_bytes(view));
  }
  // What is asked for is kept whatever the budget says; the last one taken is still in hand.
  const uint64_t kept = std::max(std::min(options.cache_bytes, total), n_ahead * image) + image;
  const auto n_threads = static_cast<uint64_t>(std::max(1, options.n_threads));
  return std::min(kept, total + image) + n_threads * decode;
}

}  // namespace millrace
