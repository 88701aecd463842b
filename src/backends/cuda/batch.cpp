// The pool of events.
#include "backends/cuda/batch.h"

namespace millrace::cuda {
namespace {

// Events that the lists have room for at once, so that they do not grow in some later step.
constexpr size_t kRoom = 256;

}  // namespace

EventPool::~EventPool() {
  context_->use();
  for (const Event event : all_) context_->driver.event_destroy(event);
}

Event EventPool::record(Status* status) {
  Event event = nullptr;
  if (free_.empty()) {
    free_.reserve(kRoom);
    all_.reserve(kRoom);
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
