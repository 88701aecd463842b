// StreamQueue: batches, what is kept back, and the end of batches.
#include "backends/cuda/stream_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "backends/cuda/event_wait.h"

namespace millrace::cuda {
namespace {

// Batches and their lists that there is room for at once, so that nothing grows in some later step.
constexpr size_t kBatchRoom = 64;
constexpr size_t kReadbackRoom = 8;
// The batches of a few steps, so that none is made in some later one.
constexpr size_t kFirstBatches = 32;
// Where nothing else is in flight the device may be about to run dry, which is seen between batches
// only.
constexpr uint32_t kThinBatch = 8;
// Kernels named in a message.
constexpr size_t kNamed = 8;

std::unique_ptr<Batch> make_batch() {
  auto batch = std::make_unique<Batch>();
  batch->readbacks.reserve(kReadbackRoom);
  return batch;
}

const char* verb_of(Command::Kind kind) {
  switch (kind) {
    case Command::Kind::Kernel:
      return "kernel";
    case Command::Kind::Upload:
      return "upload";
    case Command::Kind::Download:
      return "download";
    case Command::Kind::Copy:
      return "copy";
    case Command::Kind::Fill:
      return "fill";
  }
  return "command";
}

void describe(const Command& command, TimedCommand* timed) {
  if (command.kind == Command::Kind::Kernel) {
    timed->name = kernel_row(command.kernel).name;
    timed->details = TraceDetails::at(command.site);
    timed->details.number = {"threads", static_cast<double>(command.threads)};
    return;
  }
  timed->name = verb_of(command.kind);
  timed->details = {.number = {"bytes", static_cast<double>(command.bytes)}};
}

}  // namespace

StreamQueue::StreamQueue(const CudaContext* context, const KernelLibrary* kernels,
                         const CudaOptions& options, std::vector<PinnedStaging*> staging)
    : context_(context),
      kernels_(kernels),
      depth_(options.depth),
      commands_per_batch_(options.commands_per_batch),
      staging_(std::move(staging)),
      events_(context),
      timeline_(context, &events_),
      thread_(&completion_, [this](Point before) { return pass_batch_blocking(before); }) {
  in_flight_.reserve(kBatchRoom);
  spare_.reserve(kBatchRoom);
  while (spare_.size() < kFirstBatches) spare_.push_back(make_batch());
}

// --- Recording ---

bool StreamQueue::record(const Command& command) {
  std::lock_guard lock(mutex_);
  if (fault_.happened() || abandoned_) {
    if (command.ticket != nullptr) command.ticket->drop_reference();
    return true;
  }
  const Point point = next_point();
  recorded_.store(point, std::memory_order_release);
  if (command.kind == Command::Kind::Kernel) launches_.note(point, command.kernel, command.site);
  if (kept_.empty() && has_room(command)) return issue_command(command, point);
  // The end of a batch makes room, so what is in the driver has to be in a closed one.
  if (open_ != nullptr) end_batch();
  if (!fault_.happened()) {
    kept_.push_back(command);
  } else if (command.ticket != nullptr) {
    command.ticket->drop_reference();
  }
  return true;
}

Point StreamQueue::close_batch() {
  std::lock_guard lock(mutex_);
  if (open_ != nullptr) end_batch();
  return last_recorded();
}

bool StreamQueue::has_room(const Command& command) const {
  return calls_in_flight_ == 0 || calls_in_flight_ + n_driver_calls(*kernels_, command) <= depth_;
}

bool StreamQueue::open_batch(Point before) {
  if (spare_.empty()) {
    open_ = make_batch();
  } else {
    open_ = std::move(spare_.back());
    spare_.pop_back();
  }
  open_->last_point = before;
  open_->n_commands = open_->n_calls = 0;
  Status status = Status::Ok;
  open_->begin = events_.record(&status);
  if (open_->begin != nullptr) return true;
  put_aside(std::move(open_));
  stop(status, nullptr);
  return false;
}

bool StreamQueue::issue_command(const Command& command, Point point) {
  context_->use();
  TicketState* const ticket = command.ticket;
  if (open_ == nullptr && !open_batch(point - 1)) {
    if (ticket != nullptr) ticket->drop_reference();
    return true;
  }
  const bool timed = trace_.load(std::memory_order_acquire) != nullptr;
  TimedCommand times;
  Status status = Status::Ok;
  if (timed) times.begin = events_.record(&status);
  if (status == Status::Ok) status = issue(*context_, *kernels_, command);
  if (timed && status == Status::Ok) times.end = events_.record(&status);
  if (status != Status::Ok) {
    if (ticket != nullptr) ticket->drop_reference();
    stop(status, &command);
    return is_sticky(status);
  }
  if (timed) {
    describe(command, &times);
    open_->timed.push_back(times);
  }
  if (ticket != nullptr) {
    open_->readbacks.push_back({ticket, reinterpret_cast<const std::byte*>(command.to)});
  }
  const uint32_t n_calls = n_driver_calls(*kernels_, command);
  open_->last_point = point;
  open_->n_calls += n_calls;
  calls_in_flight_ += n_calls;
  // A ticket is looked at without a call to the device, so nothing else would close its batch.
  if (++open_->n_commands >= batch_limit() || ticket != nullptr) end_batch();
  return true;
}

uint32_t StreamQueue::batch_limit() const {
  return in_flight_.empty() ? std::min(kThinBatch, commands_per_batch_) : commands_per_batch_;
}

void StreamQueue::end_batch() {
  const Status status = try_end_batch();
  if (status != Status::Ok) stop(status, nullptr);
}

Status StreamQueue::try_end_batch() {
  context_->use();
  Status status = Status::Ok;
  open_->end = events_.record(&status);
  if (status == Status::Ok) {
    in_flight_.push_back(std::move(open_));
    thread_.wake();
  } else {
    calls_in_flight_ -= open_->n_calls;
    put_aside(std::move(open_));
  }
  return status;
}

void StreamQueue::issue_kept() {
  const bool any = !kept_.empty();
  while (!kept_.empty() && has_room(kept_.front())) {
    const Command command = kept_.front();
    const Point point = last_recorded() - kept_.size() + 1;
    kept_.pop_front();
    issue_command(command, point);
  }
  // With nothing in flight the device is at the open batch, whose end is to be seen.
  if (open_ != nullptr && (any || in_flight_.empty())) end_batch();
}

void StreamQueue::put_aside(std::unique_ptr<Batch> batch) {
  for (const Readback& readback : batch->readbacks) readback.ticket->drop_reference();
  batch->readbacks.clear();
  batch->timed.clear();
  spare_.push_back(std::move(batch));
}

// --- Faults and the end ---

std::string StreamQueue::fault_text(Status status, const Command* command) const {
  const std::string text = context_->driver.text(status);
  if (command != nullptr && !is_sticky(status)) {
    if (command->kind != Command::Kind::Kernel) {
      return fmt::format("cuda device: {} of {} bytes failed: {}", verb_of(command->kind),
                         command->bytes, text);
    }
    return fmt::format("kernel {} queued at {}:{} failed: {}", kernel_row(command->kernel).name,
                       command->site.file_name(), command->site.line(), text);
  }
  // A lost context answers for every event alike, so that all that is in the driver is suspect.
  const Point issued = last_recorded() - kept_.size();
  const std::string suspects = launches_.between(retired_, issued, kNamed);
  const std::string help = depth_ == 1 ? "" : ". The device id cuda:N,check finds out which";
  return fmt::format("the device was lost: {}; the fault is in this work: {}{}", text, suspects,
                     help);
}

void StreamQueue::stop(Status status, const Command* command) {
  const ErrorCode code = context_->driver.error(status, "").code;
  fault_.set({code, fault_text(status, command)});
  drop_kept();
  // What came before a command that the driver refused still runs.
  if (open_ != nullptr) try_end_batch();
  thread_.wake();
}

void StreamQueue::drop_kept() {
  for (; !kept_.empty(); kept_.pop_front()) {
    TicketState* const ticket = kept_.front().ticket;
    if (ticket != nullptr) ticket->drop_reference();
  }
}

void StreamQueue::abandon() {
  std::lock_guard lock(mutex_);
  abandoned_ = true;
  drop_kept();
  thread_.wake();
}

std::string StreamQueue::unfinished(size_t most) const {
  std::lock_guard lock(mutex_);
  return launches_.between(completion_.passed(), last_recorded(), most);
}

void StreamQueue::add_times(QueueStats* stats) const {
  std::lock_guard lock(mutex_);
  stats->busy_ns += timeline_.busy_ns();
  stats->dry_ns += timeline_.dry_ns();
}

// --- Completion ---

Batch* StreamQueue::oldest_batch() {
  std::lock_guard lock(mutex_);
  return in_flight_.empty() ? nullptr : in_flight_.front().get();
}

Point StreamQueue::pass_batch_blocking(Point before) {
  Batch* const batch = oldest_batch();
  if (batch == nullptr) {
    // Nothing that is recorded after a fault or the end has an effect, and nobody may wait for it.
    if (fault_.happened() || abandoned_) return last_recorded();
    for (PinnedStaging* const staging : staging_) staging->free_unused_blocking();
    return before;
  }
  const Status status = wait_for_event_blocking(*context_, batch->end);
  if (status == Status::Ok && !abandoned_) {
    for (const Readback& readback : batch->readbacks) {
      const std::span<std::byte> storage = readback.ticket->storage();
      if (!storage.empty()) std::memcpy(storage.data(), readback.from, storage.size());
      readback.ticket->set_ready();
    }
  }
  return retire_oldest(status);
}

Point StreamQueue::retire_oldest(Status status) {
  std::lock_guard lock(mutex_);
  std::unique_ptr<Batch> batch = std::move(in_flight_.front());
  in_flight_.erase(in_flight_.begin());
  const Point last = batch->last_point;
  calls_in_flight_ -= batch->n_calls;
  if (status == Status::Ok) {
    timeline_.add(batch.get(), trace_.load(std::memory_order_acquire));
  } else {
    stop(status, nullptr);
  }
  retired_ = last;
  put_aside(std::move(batch));
  issue_kept();
  return in_flight_.empty() && fault_.happened() ? last_recorded() : last;
}

}  // namespace millrace::cuda
