// TicketPool: the host memory behind tickets, reused from ticket to ticket.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "device/device.h"

namespace millrace {

class TicketPool;

/// What a ticket refers to: bytes that the device fills before it calls set_ready(). Counts its own
/// references and returns to its pool when the last one goes.
class TicketState {
 public:
  std::span<std::byte> storage() { return {data_.get(), bytes_}; }
  std::span<const std::byte> storage() const { return {data_.get(), bytes_}; }
  Point point() const { return point_; }
  /// Publishes the bytes to every thread that sees ready().
  void set_ready() { ready_.store(true, std::memory_order_release); }
  bool ready() const { return ready_.load(std::memory_order_acquire); }
  void add_reference() { references_.fetch_add(1, std::memory_order_relaxed); }
  void drop_reference();

 private:
  friend class TicketPool;

  std::atomic<uint32_t> references_ = 0;
  std::atomic<bool> ready_ = false;
  Point point_ = 0;
  size_t bytes_ = 0;
  size_t capacity_ = 0;
  std::unique_ptr<std::byte[]> data_;
  std::shared_ptr<TicketPool> home_;  // only while referenced, so that tickets may outlive devices
};

/// Thread-safe free list of ticket states. A take() of a size that was returned before allocates
/// nothing.
class TicketPool : public std::enable_shared_from_this<TicketPool> {
 public:
  TicketPool();
  static std::shared_ptr<TicketPool> make() { return std::make_shared<TicketPool>(); }

  /// A state with room for `bytes`, not ready, with one reference that the caller owns.
  TicketState* take(size_t bytes, Point point);

 private:
  friend class TicketState;

  void give_back(TicketState* state);

  std::mutex mutex_;
  std::vector<std::unique_ptr<TicketState>> small_;  // free, up to kSmall bytes each
  std::vector<std::unique_ptr<TicketState>> large_;  // free, above
};

}  // namespace millrace
