// The wait ledger's rows and counts.
#include "device/wait_ledger.h"

#include <fmt/format.h>

#include <string_view>

#include "device/trace.h"

namespace millrace {
namespace {

// Paths in records start at the source tree, not at the machine's root.
std::string short_path(const char* path) {
  const std::string_view all(path);
  for (const std::string_view root : {"/src/", "/tests/", "/tools/"}) {
    const size_t at = all.rfind(root);
    if (at != std::string_view::npos) return std::string(all.substr(at + 1));
  }
  return std::string(all);
}

bool same_site(const WaitSite& a, const WaitSite& b) {
  return a.reason == b.reason && a.where.line() == b.where.line() &&
         std::string_view(a.name) == b.name &&
         std::string_view(a.where.file_name()) == b.where.file_name();
}

}  // namespace

std::string source_place(const char* file, uint32_t line) {
  return fmt::format("{}:{}", short_path(file), line);
}

const char* to_string(WaitReason reason) {
  switch (reason) {
    case WaitReason::UserRead:
      return "UserRead";
    case WaitReason::Pacing:
      return "Pacing";
    case WaitReason::StagingFull:
      return "StagingFull";
    case WaitReason::Decode:
      return "Decode";
    case WaitReason::Replay:
      return "Replay";
    case WaitReason::Resize:
      return "Resize";
    case WaitReason::Shutdown:
      return "Shutdown";
    case WaitReason::Test:
      return "Test";
  }
  return "Unknown";
}

WaitRecord* WaitLedger::find(const WaitSite& site) {
  for (size_t i = 0; i < sites_.size(); ++i) {
    if (same_site(sites_[i], site)) return &records_[i];
  }
  return nullptr;
}

void WaitLedger::record(const WaitSite& site, std::chrono::steady_clock::time_point begin) {
  const auto end = std::chrono::steady_clock::now();
  const auto blocked = std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin);
  if (TraceRecorder* trace = this->trace()) {
    TraceDetails details = TraceDetails::at(site.where);
    details.reason = to_string(site.reason);
    trace->span(TraceTrack::Waits, site.name, begin, end, details);
  }
  std::lock_guard lock(mutex_);
  WaitRecord* row = find(site);
  if (row == nullptr) {
    sites_.push_back(site);
    row = &records_.emplace_back();
    row->site = site.name;
    row->where = source_place(site.where.file_name(), site.where.line());
    row->reason = site.reason;
  }
  ++row->count;
  row->blocked_ns += static_cast<uint64_t>(blocked.count());
}

void WaitLedger::add_device_dry(const WaitSite& site, uint64_t ns) {
  std::lock_guard lock(mutex_);
  if (WaitRecord* row = find(site)) row->device_dry_ns += ns;
}

std::vector<WaitRecord> WaitLedger::records() const {
  std::lock_guard lock(mutex_);
  return records_;
}

void WaitLedger::read_totals(std::vector<Totals>* totals) const {
  std::lock_guard lock(mutex_);
  totals->clear();
  for (const WaitRecord& row : records_) totals->push_back({row.count, row.blocked_ns});
}

uint64_t WaitLedger::count(WaitReason reason) const {
  std::lock_guard lock(mutex_);
  uint64_t sum = 0;
  for (const WaitRecord& row : records_) sum += row.reason == reason ? row.count : 0;
  return sum;
}

uint64_t WaitLedger::count_except_pacing() const {
  std::lock_guard lock(mutex_);
  uint64_t sum = 0;
  for (const WaitRecord& row : records_) sum += row.reason == WaitReason::Pacing ? 0 : row.count;
  return sum;
}

}  // namespace millrace
