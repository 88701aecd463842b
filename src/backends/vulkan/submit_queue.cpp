// SubmitQueue: batches, their submission and their end.
#include "backends/vulkan/submit_queue.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstring>

#include "backends/vulkan/wait.h"

namespace millrace::vulkan {
namespace {

// Commands and batches that there is room for at once, so that nothing grows in some later step.
constexpr size_t kCommandRoom = 1024;
constexpr size_t kBatchRoom = 64;
// Where nothing else is in flight the device may be about to run dry.
constexpr uint32_t kThinBatch = 8;
// Kernels named in a message.
constexpr size_t kNamed = 8;

}  // namespace

SubmitQueue::SubmitQueue(VulkanContext* context, VulkanPipelines* pipelines)
    : context_(context),
      pipelines_(pipelines),
      commands_per_batch_(context->options().commands_per_batch),
      batches_(context),
      timeline_(context),
      completion_([this](Point point) { allow(point); }),
      completion_thread_(&completion_,
                         [this](Point before) { return pass_batch_blocking(before); }),
      submission_thread_([this] { submit_closed(); }) {
  std::lock_guard lock(mutex_);
  waiting_.reserve(kCommandRoom);
  commands_.reserve(kCommandRoom);
  std::lock_guard batches_lock(batches_mutex_);
  in_flight_.reserve(kBatchRoom);
}

// --- Recording ---

void SubmitQueue::record(const Command& command) {
  std::lock_guard lock(mutex_);
  if (fault_.happened() || abandoned_) {
    if (command.ticket != nullptr) command.ticket->drop_reference();
    return;
  }
  waiting_.push_back(command);
  const Point point = next_point();
  recorded_.store(point, std::memory_order_release);
  if (command.kind == Command::Kind::Kernel) launches_.note(point, command.kernel, command.site);
  // A ticket is looked at without a call to the device, so nothing else would close its batch.
  if (command.ticket != nullptr || waiting_.size() - n_closed_ >= batch_limit()) close_locked();
}

uint32_t SubmitQueue::batch_limit() const {
  return n_in_flight_ == 0 ? std::min(kThinBatch, commands_per_batch_) : commands_per_batch_;
}

void SubmitQueue::close_locked() {
  if (n_closed_ == waiting_.size()) return;
  n_closed_ = waiting_.size();
  submission_thread_.wake();
}

Point SubmitQueue::close_batch() {
  std::lock_guard lock(mutex_);
  close_locked();
  return last_recorded();
}

void SubmitQueue::allow(Point point) {
  if (context_->gate() == VK_NULL_HANDLE) return;
  std::lock_guard lock(gate_mutex_);
  if (point <= allowed_) return;
  allowed_ = point;
  VkSemaphoreSignalInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO;
  info.semaphore = context_->gate();
  info.value = point;
  const VkResult signalled = context_->api().vkSignalSemaphore(context_->device(), &info);
  if (signalled != VK_SUCCESS) stop(error_of(signalled, "vkSignalSemaphore"));
}

void SubmitQueue::stop(Error error) {
  fault_.set(std::move(error));
  completion_thread_.wake();
}

void SubmitQueue::abandon() {
  abandoned_ = true;
  submission_thread_.wake();
  completion_thread_.wake();
}

std::string SubmitQueue::unfinished(size_t most) const {
  std::lock_guard lock(mutex_);
  return launches_.between(completion_.passed(), last_recorded(), most);
}

void SubmitQueue::add_times(QueueStats* stats) const {
  std::lock_guard lock(batches_mutex_);
  stats->busy_ns += timeline_.busy_ns();
  stats->dry_ns += timeline_.dry_ns();
}

// --- Submission ---

void SubmitQueue::submit_closed() {
  while (take_commands()) submit_commands();
}

bool SubmitQueue::take_commands() {
  std::lock_guard lock(mutex_);
  const size_t n = std::min<size_t>(n_closed_ - n_taken_, commands_per_batch_);
  if (n == 0) return false;
  const auto first = waiting_.begin() + static_cast<std::ptrdiff_t>(n_taken_);
  commands_.assign(first, first + static_cast<std::ptrdiff_t>(n));
  n_taken_ += n;
  commands_end_ = last_recorded() - (waiting_.size() - n_taken_);
  if (n_taken_ > waiting_.size() / 2) {
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(n_taken_));
    n_closed_ -= n_taken_;
    n_taken_ = 0;
  }
  return true;
}

void SubmitQueue::drop_commands(size_t from) {
  for (size_t i = from; i < commands_.size(); ++i) {
    if (commands_[i].ticket != nullptr) commands_[i].ticket->drop_reference();
  }
  // Whoever waits for them is let go.
  completion_thread_.wake();
}

void SubmitQueue::submit_commands() {
  if (fault_.happened() || abandoned_) return drop_commands(0);
  Result<Batch*> taken = [this] {
    std::lock_guard lock(batches_mutex_);
    return batches_.take();
  }();
  if (!taken.ok()) {
    stop(taken.error());
    return drop_commands(0);
  }
  Batch* const batch = taken.value();
  const auto filled = fill_batch(batch);
  const size_t n = filled.ok() ? filled.value() : 0;
  if (!filled.ok()) stop(filled.error());
  batch->last_point = commands_end_ - (commands_.size() - n);
  if (n > 0) {
    const auto handed = hand_over(batch);
    if (!handed.ok()) stop(handed.error());
    if (handed.ok()) return n < commands_.size() ? drop_commands(n) : completion_thread_.wake();
  }
  {
    std::lock_guard lock(batches_mutex_);
    batches_.give_back(batch);
  }
  drop_commands(n);
}

Result<size_t> SubmitQueue::fill_batch(Batch* batch) {
  const VulkanApi& api = context_->api();
  const bool traced = trace_.load(std::memory_order_acquire) != nullptr;
  MILLRACE_VULKAN_TRY(api.vkResetCommandPool(context_->device(), batch->pool, 0),
                      "vkResetCommandPool");
  VkCommandBufferBeginInfo begin{};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  MILLRACE_VULKAN_TRY(api.vkBeginCommandBuffer(batch->buffer, &begin), "vkBeginCommandBuffer");
  begin_timestamps(*context_, batch);
  put_timestamp(*context_, batch);
  size_t n = 0;
  for (; n < commands_.size(); ++n) {
    const Command& command = commands_[n];
    const auto done = put(*context_, *pipelines_, command, batch->buffer);
    if (!done.ok()) {
      stop({done.error().code,
            fmt::format("{} failed: {}", describe(command), done.error().message)});
      break;
    }
    if (command.ticket != nullptr) batch->readbacks.push_back({command.ticket, command.landing});
    if (!traced) continue;
    put_timestamp(*context_, batch);
    TraceDetails details = TraceDetails::at(command.site);
    const bool kernel = command.kind == Command::Kind::Kernel;
    if (!kernel) details = {};
    details.number = {kernel ? "threads" : "bytes",
                      static_cast<double>(kernel ? command.threads : command.bytes)};
    batch->traced.push_back({trace_name(command), details});
  }
  put_timestamp(*context_, batch);
  copy_timestamps(*context_, batch);
  // What passes with the batch is seen by whatever comes later, on the host too; this is what lets
  // ranges be forgotten once they have passed.
  put_barrier(*context_, batch->buffer, true);
  MILLRACE_VULKAN_TRY(api.vkEndCommandBuffer(batch->buffer), "vkEndCommandBuffer");
  return n;
}

Result<void> SubmitQueue::hand_over(Batch* batch) {
  VkCommandBufferSubmitInfo buffer{};
  buffer.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO;
  buffer.commandBuffer = batch->buffer;
  VkSemaphoreSubmitInfo signal{};
  signal.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO;
  signal.semaphore = context_->timeline();
  signal.value = batch->last_point;
  signal.stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT;
  VkSemaphoreSubmitInfo gate = signal;
  gate.semaphore = context_->gate();
  VkSubmitInfo2 info{};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2;
  info.waitSemaphoreInfoCount = context_->gate() != VK_NULL_HANDLE ? 1 : 0;
  info.pWaitSemaphoreInfos = &gate;
  info.commandBufferInfoCount = 1;
  info.pCommandBufferInfos = &buffer;
  info.signalSemaphoreInfoCount = 1;
  info.pSignalSemaphoreInfos = &signal;
  MILLRACE_VULKAN_TRY(context_->api().vkQueueSubmit2(context_->queue(), 1, &info, VK_NULL_HANDLE),
                      "vkQueueSubmit2");
  std::lock_guard lock(batches_mutex_);
  in_flight_.push_back(batch);
  n_in_flight_ = in_flight_.size();
  return {};
}

// --- Completion ---

Batch* SubmitQueue::oldest_batch() const {
  std::lock_guard lock(batches_mutex_);
  return in_flight_.empty() ? nullptr : in_flight_.front();
}

Point SubmitQueue::pass_batch_blocking(Point before) {
  Batch* const batch = oldest_batch();
  if (batch == nullptr) {
    // Nothing that is recorded after a fault or the end has an effect, and nobody may wait for it.
    return fault_.happened() || abandoned_ ? last_recorded() : before;
  }
  const auto waited = wait_for_point_blocking(*context_, batch->last_point);
  if (waited.ok() && !abandoned_) {
    for (const Readback& readback : batch->readbacks) {
      const std::span<std::byte> storage = readback.ticket->storage();
      if (!storage.empty()) std::memcpy(storage.data(), readback.from, storage.size());
      readback.ticket->set_ready();
    }
  }
  return retire_oldest(waited);
}

Point SubmitQueue::retire_oldest(const Result<void>& waited) {
  if (!waited.ok()) {
    const std::string suspects = unfinished(kNamed);
    fault_.set({waited.error().code, fmt::format("the device was lost: {}; the fault is in this "
                                                 "work: {}",
                                                 waited.error().message, suspects)});
  }
  std::lock_guard lock(batches_mutex_);
  Batch* const batch = in_flight_.front();
  in_flight_.erase(in_flight_.begin());
  n_in_flight_ = in_flight_.size();
  const Point last = batch->last_point;
  if (waited.ok()) timeline_.add(*batch, trace_.load(std::memory_order_acquire));
  batches_.give_back(batch);
  if (in_flight_.empty() && fault_.happened()) return last_recorded();
  return std::max(last, completion_.passed());
}

}  // namespace millrace::vulkan
