// Saving and scoring beside training.
#include "train/publisher.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "device/trace.h"
#include "io/ply.h"
#include "train/finite_rows.h"
#include "train/view_renderer.h"

namespace millrace {
namespace {

constexpr uint64_t kRowsAtOnce = 16384;  // of a model that is saved

}  // namespace

Publisher::Publisher(Setup setup, Device& device, const TrainObserver& observer)
    : setup_(std::move(setup)),
      device_(device),
      observer_(observer),
      trace_(device.ledger().trace()) {
  if (trace_) decodes_ = trace_->add_track("loader");
}

void Publisher::post(std::function<Result<void>()> job) {
  {
    std::lock_guard lock(mutex_);
    ++n_jobs_;
  }
  worker_.post([this, job = std::move(job)] {
    Result<void> done;
    try {
      done = job();
    } catch (const std::bad_alloc&) {
      done = Error{ErrorCode::OutOfMemory,
                   "no memory is left to save or score the model; lower --max-cap or train at a "
                   "smaller size (-r 2)"};
    } catch (const Exception& exception) {
      done = exception.error();
    }
    {
      std::lock_guard lock(mutex_);
      --n_jobs_;
      if (!done.ok() && !failed_) {
        failed_ = true;
        error_ = done.error();
      }
      has_news_.store(true, std::memory_order_release);
    }
    changed_.notify_all();
  });
}

void Publisher::report(Report report) {
  std::lock_guard lock(mutex_);
  reports_.push_back(std::move(report));
}

bool Publisher::has_room() {
  std::lock_guard lock(mutex_);
  return waiting_bytes_ <= setup_.most_waiting_bytes;
}

bool Publisher::has_snapshot_room() {
  std::lock_guard lock(mutex_);
  return n_waiting_snapshots_ == 0;
}

Result<void> Publisher::make_room_blocking() {
  if (!evaluating_) eval_begin_ = std::chrono::steady_clock::now();
  evaluating_ = true;
  std::unique_lock lock(mutex_);
  device_.ledger().wait_blocking(lock, changed_,
                                 [this] { return waiting_bytes_ <= setup_.most_waiting_bytes; },
                                 {WaitReason::UserRead, "trainer.evaluation_backlog"});
  return {};
}

Result<void> Publisher::make_snapshot_room_blocking() {
  std::unique_lock lock(mutex_);
  device_.ledger().wait_blocking(lock, changed_, [this] { return n_waiting_snapshots_ == 0; },
                                 {WaitReason::UserRead, "trainer.snapshot_backlog"});
  return {};
}

void Publisher::rendered(const RenderedView& view) {
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - eval_begin_;
  if (view.view + 1 == setup_.eval_views.size()) evaluating_ = false;
  const uint64_t bytes = view.image.bytes().size();
  {
    std::lock_guard lock(mutex_);
    waiting_bytes_ += bytes;
  }
  post([this, view, bytes, seconds = seconds.count()] {
    Result<void> scored = score(view, seconds);
    std::lock_guard lock(mutex_);
    waiting_bytes_ -= bytes;
    return scored;
  });
}

void Publisher::snapshot(uint32_t steps, ModelSnapshot snapshot) {
  {
    std::lock_guard lock(mutex_);
    ++n_waiting_snapshots_;
  }
  post([this, steps, snapshot = std::move(snapshot)]() mutable {
    // Saved or not (it may throw), the snapshot is gone before the next one is asked for.
    struct Done {
      Publisher& publisher;
      ModelSnapshot& snapshot;
      ~Done() {
        snapshot = ModelSnapshot();
        std::lock_guard lock(publisher.mutex_);
        --publisher.n_waiting_snapshots_;
      }
    } const done{*this, snapshot};
    return save(steps, snapshot);
  });
}

Result<void> Publisher::save(uint32_t steps, const ModelSnapshot& snapshot) {
  const TraceSpan span(trace_, TraceTrack::Phases, "save");
  const uint64_t n_rows = row_count(snapshot);
  // Free rows of an MRNF model are no Gaussians; MCMC's model has none.
  const bool has_free = control_of(snapshot).counts.free > 0;
  const uint64_t n = n_rows - control_of(snapshot).counts.free;
  // Piece by piece, so that saving takes little memory beside the snapshot: first the count, then
  // the rows.
  const auto for_each_piece = [&](const auto& visit) -> Result<void> {
    for (uint64_t begin = 0; begin < n_rows; begin += kRowsAtOnce) {
      GaussianCloud cloud = cloud_of(snapshot, begin, std::min(n_rows, begin + kRowsAtOnce));
      if (has_free) drop_free_rows(cloud);
      const uint64_t n_dropped = drop_non_finite_rows(cloud);
      MILLRACE_TRY(visit(cloud, n_dropped));
    }
    return {};
  };
  uint64_t n_dropped = 0;
  MILLRACE_TRY(for_each_piece([&](const GaussianCloud&, uint64_t dropped) -> Result<void> {
    n_dropped += dropped;
    return {};
  }));
  if (n_dropped > 0) {
    report([this, n, n_dropped] {
      if (!observer_.warning) return;
      observer_.warning(fmt::format("{} of {} Gaussians hold no numbers any more and are not saved",
                                    n_dropped, n));
    });
  }
  if (n > n_dropped) {
    const std::filesystem::path file = setup_.folder.ply(steps);
    MILLRACE_ASSIGN(
        GaussianPlyWriter writer,
        GaussianPlyWriter::create(file, n - n_dropped, snapshot.max_sh_degree, setup_.mip_filter));
    MILLRACE_TRY(for_each_piece(
        [&](const GaussianCloud& cloud, uint64_t) -> Result<void> { return writer.add(cloud); }));
    MILLRACE_TRY(writer.finish());
    report([this, file] {
      ply_ = file;
      if (observer_.saved) observer_.saved(std::filesystem::absolute(file));
    });
  }
  if (2 * n_dropped > n) {
    return Error{
        ErrorCode::Diverged,
        fmt::format(
            "training diverged: after {} steps {} of {} Gaussians hold no numbers. Lower the "
            "learning rates (--means-lr, --scaling-lr, ...)",
            steps, n_dropped, n)};
  }
  return {};
}

Result<std::shared_ptr<const Image8>> Publisher::photograph_of(const View& view) {
  const TraceSpan span(trace_, decodes_, trace_ ? trace_->intern(view.name) : nullptr);
  if (setup_.decode_delay_ms > 0) pause_worker(setup_.decode_delay_ms);
  MILLRACE_ASSIGN(Image8 image, load_view_image(view, setup_.background));
  return std::make_shared<const Image8>(std::move(image));
}

Result<void> Publisher::score(const RenderedView& view, double seconds) {
  const TraceSpan span(trace_, TraceTrack::Phases, "score");
  const auto n_views = static_cast<uint32_t>(setup_.eval_views.size());
  if (view.view == 0) {
    const bool keeps_renders = view.steps == setup_.last_step;
    scores_ = std::make_unique<ViewScores>(n_views, keeps_renders ? &setup_.folder : nullptr,
                                           setup_.masks);
  }
  const View& held_out = setup_.eval_views[view.view];
  const auto photograph = photograph_of(held_out);
  if (!photograph.ok()) {
    report([this, text = photograph.error().message] {
      if (observer_.warning) observer_.warning(text);
    });
  }
  const ImageF image = ViewRenderer::interleave(
      reinterpret_cast<const float*>(view.image.bytes().data()), view.size.width, view.size.height);
  MILLRACE_TRY(scores_->add(view.view, held_out, image, photograph));
  if (view.view + 1 < n_views) return {};
  Evaluation evaluation = scores_->take();
  evaluation.result.step = view.steps;
  evaluation.result.gaussians = view.gaussians;
  evaluation.result.seconds = seconds;
  MILLRACE_TRY(write_stats(setup_.folder, evaluation.result));
  report([this, shared = std::make_shared<Evaluation>(std::move(evaluation))] {
    publish(std::move(*shared));
  });
  return {};
}

void Publisher::publish(Evaluation evaluation) {
  last_eval_ = evaluation.result;
  contact_rows_ = std::move(evaluation.contact_rows);
  if (observer_.evaluated) observer_.evaluated(last_eval_);
}

Result<void> Publisher::deliver() {
  if (!has_news_.load(std::memory_order_acquire)) return {};
  std::vector<Report> reports;
  Result<void> outcome;
  {
    std::lock_guard lock(mutex_);
    has_news_.store(false, std::memory_order_relaxed);
    reports.swap(reports_);
    if (failed_) outcome = std::exchange(error_, {});
    failed_ = false;
  }
  for (const Report& report : reports) report();
  return outcome;
}

Result<void> Publisher::finish_blocking() {
  {
    std::unique_lock lock(mutex_);
    device_.ledger().wait_blocking(lock, changed_, [this] { return n_jobs_ == 0; },
                                   {WaitReason::UserRead, "trainer.publish"});
  }
  return deliver();
}

uint64_t saving_bytes(int sh_degree) {
  const auto lanes = kGeometryLanes + 3 * static_cast<uint64_t>(sh_rest_count(sh_degree));
  // The piece, its geometry before it is taken apart, and rows for the file with vectors' slack.
  return 3 * kRowsAtOnce * lanes * sizeof(float);
}

}  // namespace millrace
