// TicketPool: reuse of memory, shared values and life beyond the pool.
#include "device/ticket_pool.h"

#include <gtest/gtest.h>

#include <cstring>

namespace millrace {
namespace {

Ticket filled(TicketPool& pool, size_t bytes, uint8_t value) {
  TicketState* state = pool.take(bytes, 7);
  std::memset(state->storage().data(), value, bytes);
  state->set_ready();
  return Ticket(state);
}

TEST(TicketPool, CopiesShareTheValue) {
  const auto pool = TicketPool::make();
  Ticket copy;
  EXPECT_FALSE(copy);
  EXPECT_FALSE(copy.ready());
  {
    const Ticket ticket = filled(*pool, 4, 5);
    copy = ticket;
    EXPECT_EQ(copy.bytes().data(), ticket.bytes().data());
  }
  EXPECT_EQ(copy.as<uint32_t>(), 0x05050505u);
  EXPECT_EQ(copy.point(), 7u);
  const Ticket& itself = copy;  // clang warns of `copy = copy`
  copy = itself;
  EXPECT_EQ(copy.as<uint8_t>(), 5u);
}

TEST(TicketPool, ReusesTheMemoryOfDroppedTickets) {
  const auto pool = TicketPool::make();
  const std::byte* first = nullptr;
  {
    const Ticket ticket = filled(*pool, 4, 1);
    first = ticket.bytes().data();
  }
  TicketState* again = pool->take(8, 9);
  EXPECT_EQ(again->storage().data(), first);
  EXPECT_FALSE(again->ready());
  EXPECT_EQ(again->storage().size(), 8u);
  again->drop_reference();
  TicketState* larger = pool->take(100'000, 9);
  EXPECT_NE(larger->storage().data(), first);
  larger->drop_reference();
}

TEST(TicketPool, TicketsOutliveThePool) {
  auto pool = TicketPool::make();
  const Ticket ticket = filled(*pool, 4, 3);
  pool.reset();
  EXPECT_EQ(ticket.as<uint8_t>(), 3u);
}

}  // namespace
}  // namespace millrace
