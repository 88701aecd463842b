// TicketPool and the reference counting of Ticket.
#include "device/ticket_pool.h"

#include <algorithm>

namespace millrace {
namespace {

constexpr size_t kTiny = 64;  // a scalar read back
constexpr size_t kSmall = 4096;
// Images that were read back once should not stay for ever: this many are kept.
constexpr size_t kMaxLargeFree = 8;
// A snapshot of a model is rare and may be as large as all else.
constexpr size_t kLargestKept = size_t{16} << 20;
// Free entries that the list has room for at once, so that it does not grow in some later step.
constexpr size_t kRoom = 64;

}  // namespace

void TicketState::drop_reference() {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const std::shared_ptr<TicketPool> home = std::move(home_);
  home->give_back(this);
}

TicketPool::TicketPool() {
  small_.reserve(kRoom);
  large_.reserve(kMaxLargeFree);
}

TicketState* TicketPool::take(size_t bytes, Point point) {
  std::unique_ptr<TicketState> state;
  {
    std::lock_guard lock(mutex_);
    auto& free = bytes <= kSmall ? small_ : large_;
    auto fit = std::find_if(free.rbegin(), free.rend(),
                            [bytes](const auto& other) { return other->capacity_ >= bytes; });
    if (fit != free.rend()) {
      std::swap(*fit, free.back());
      state = std::move(free.back());
      free.pop_back();
    }
  }
  if (state == nullptr) {
    state = std::make_unique<TicketState>();
    state->capacity_ = bytes <= kTiny ? kTiny : std::max(bytes, kSmall);
    state->data_ = std::make_unique_for_overwrite<std::byte[]>(state->capacity_);
  }
  state->bytes_ = bytes;
  state->point_ = point;
  state->ready_.store(false, std::memory_order_relaxed);
  state->references_.store(1, std::memory_order_relaxed);
  state->home_ = shared_from_this();
  return state.release();
}

void TicketPool::give_back(TicketState* state) {
  std::unique_ptr<TicketState> owned(state);
  std::lock_guard lock(mutex_);
  if (owned->capacity_ <= kSmall) {
    small_.push_back(std::move(owned));
  } else if (owned->capacity_ <= kLargestKept && large_.size() < kMaxLargeFree) {
    large_.push_back(std::move(owned));
  }
}

Ticket::Ticket(const Ticket& other) : state_(other.state_) {
  if (state_ != nullptr) state_->add_reference();
}

Ticket::~Ticket() {
  if (state_ != nullptr) state_->drop_reference();
}

bool Ticket::ready() const { return state_ != nullptr && state_->ready(); }

std::span<const std::byte> Ticket::bytes() const {
  return static_cast<const TicketState*>(state_)->storage();
}

Point Ticket::point() const { return state_->point(); }

}  // namespace millrace
