// The pool of events.
#include "backends/cuda/batch.h"

namespace millrace::cuda {
namespace {

// Events that the lists have room for at once, so that they do not grow in some later step.
constexpr size_t kRoom = 256;
constexpr size_t kFirstEvents = 64;

}  // namespace

EventPool::EventPool(const CudaContext* context) : context_(context) {
  context_->use();
  free_.reserve(kRoom);
  all_.reserve(kRoom);
  for (size_t i = 0; i < kFirstEvents; ++i) {
    Event event = nullptr;
    // A failure comes back where an event is needed.
    if (context_->driver.event_create(&event, kEventBlockingSync) != Status::Ok) break;
    all_.push_back(event);
    free_.push_back(event);
  }
}

EventPool::~EventPool() {
  context_->use();
  for (const Event event : all_) context_->driver.event_destroy(event);
}

Event EventPool::record(Status* status) {
  Event event = nullptr;
  if (free_.empty()) {
    *status = context_->driver.event_create(&event, kEventBlockingSync);
    if (*status != Status::Ok) return nullptr;
    all_.push_back(event);
  } else {
    event = free_.back();
    free_.pop_back();
  }
  *status = context_->driver.event_record(event, context_->stream());
  if (*status == Status::Ok) return event;
  give_back(event);
  return nullptr;
}

void EventPool::give_back(Event event) {
  if (event != nullptr) free_.push_back(event);
}

}  // namespace millrace::cuda
