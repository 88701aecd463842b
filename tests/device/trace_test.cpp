// TraceRecorder: what the JSON holds, the limit, and what is recorded of a device and of waits.
#include "device/trace.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/worker_pool.h"
#include "device/device_helpers.h"
#include "device/wait_ledger.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using Clock = TraceRecorder::Clock;
using testing::add;
using testing::whole;

nlohmann::json parsed(const TraceRecorder& trace) {
  auto json = nlohmann::json::parse(trace.to_json(), nullptr, false);
  EXPECT_FALSE(json.is_discarded()) << trace.to_json();
  return json;
}

/// The events of `track` (a thread's name), spans and instants.
std::vector<nlohmann::json> events_of(const nlohmann::json& json, const std::string& track) {
  int thread = -1;
  for (const auto& event : json["traceEvents"]) {
    if (event["name"] == "thread_name" && event["args"]["name"] == track) thread = event["tid"];
  }
  std::vector<nlohmann::json> events;
  for (const auto& event : json["traceEvents"]) {
    if (event["ph"] != "M" && event["tid"] == thread) events.push_back(event);
  }
  return events;
}

fs::path scratch(const char* name) {
  const fs::path folder = fs::path(::testing::TempDir()) / "millrace-trace-test";
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder / name;
}

TEST(TraceRecorder, ASpanHasItsTimesInMicrosecondsAndItsDetails) {
  TraceRecorder trace;
  const auto begin = Clock::now();
  TraceDetails details = TraceDetails::at(SourceLocation::current());
  details.number = {"bytes", 12345678901.0};
  details.second = {"loss", std::nan("")};
  details.reason = "Pacing";
  trace.span(TraceTrack::Device, "blend", begin, begin + std::chrono::nanoseconds(1234567),
             details);
  const auto events = events_of(parsed(trace), "device");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0]["name"], "blend");
  EXPECT_EQ(events[0]["ph"], "X");
  EXPECT_DOUBLE_EQ(events[0]["dur"].get<double>(), 1234.567);
  EXPECT_EQ(events[0]["args"]["bytes"].get<uint64_t>(), 12345678901u);
  EXPECT_TRUE(events[0]["args"]["loss"].is_null());
  EXPECT_EQ(events[0]["args"]["reason"], "Pacing");
  EXPECT_TRUE(
      events[0]["args"]["site"].get<std::string>().starts_with("tests/device/trace_test.cpp:"))
      << events[0];
}

TEST(TraceRecorder, AnInstantHasNoDuration) {
  TraceRecorder trace;
  trace.instant(TraceTrack::Accepted, "step", {.number = {"step", 7}});
  const auto events = events_of(parsed(trace), "accepted");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0]["ph"], "i");
  EXPECT_FALSE(events[0].contains("dur"));
  EXPECT_EQ(events[0]["args"]["step"], 7);
}

TEST(TraceRecorder, NamesOfAnyBytesStayValidJson) {
  TraceRecorder trace;
  const char* names[] = {"a\"b\\c\n", "\xff\xfe.jpg", "caf\xc3\xa9", "\xe2\x82", "\xed\xa0\x80"};
  for (const char* name : names) trace.instant(TraceTrack::Phases, name);
  const auto events = events_of(parsed(trace), "phases");
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[0]["name"], "a\"b\\c\n");
  EXPECT_EQ(events[1]["name"], "\xef\xbf\xbd\xef\xbf\xbd.jpg");
  EXPECT_EQ(events[2]["name"], "caf\xc3\xa9");
}

TEST(TraceRecorder, WhatComesAfterTheLimitIsCountedAndToldOf) {
  TraceRecorder trace(3);
  for (int i = 0; i < 10; ++i) trace.instant(TraceTrack::Phases, "again");
  EXPECT_EQ(trace.dropped(), 7u);
  const auto json = parsed(trace);
  EXPECT_EQ(events_of(json, "phases").size(), 3u);
  EXPECT_EQ(json["otherData"]["dropped_events"], 7);
  EXPECT_EQ(json["otherData"]["event_limit"], 3);
}

TEST(TraceRecorder, TracksOfOneNameAreNumbered) {
  TraceRecorder trace;
  const TraceTrack first = trace.add_track("loader"), second = trace.add_track("loader");
  trace.instant(first, "a");
  trace.instant(second, "b");
  const auto json = parsed(trace);
  EXPECT_EQ(events_of(json, "loader 1").at(0)["name"], "a");
  EXPECT_EQ(events_of(json, "loader 2").at(0)["name"], "b");
}

TEST(TraceRecorder, InternedTextsOutliveTheirSourceAndAreShared) {
  TraceRecorder trace;
  std::string name = "IMG_0001.jpg";
  const char* kept = trace.intern(name);
  EXPECT_EQ(trace.intern(name), kept);
  name.assign(name.size(), 'x');
  EXPECT_STREQ(kept, "IMG_0001.jpg");
}

TEST(TraceRecorder, ThreadsMayRecordAtOnce) {
  constexpr int kJobs = 4, kEach = 300;
  TraceRecorder trace(1000);
  WaitLedger ledger;
  std::mutex mutex;
  std::condition_variable changed;
  int n_done = 0;
  {
    WorkerPool pool(kJobs);
    for (int i = 0; i < kJobs; ++i) {
      pool.post([&] {
        for (int n = 0; n < kEach; ++n) trace.instant(TraceTrack::Phases, "here");
        std::lock_guard lock(mutex);
        ++n_done;
        changed.notify_all();
      });
    }
    std::unique_lock lock(mutex);
    ledger.wait_blocking(lock, changed, [&] { return n_done == kJobs; },
                         {WaitReason::Test, "test.threads"});
  }
  EXPECT_EQ(events_of(parsed(trace), "phases").size(), 1000u);
  EXPECT_EQ(trace.dropped(), 200u);
}

TEST(TraceSpan, WithoutARecorderNothingHappens) {
  const TraceSpan span(nullptr, TraceTrack::Phases, "nothing");
}

TEST(TraceOfADevice, HoldsEveryCommandInOrderWithTheSiteThatQueuedIt) {
  TraceRecorder trace;
  const auto device = make_checked(open_device("cpu:1").or_raise());
  device->set_trace(&trace);
  const BufferId data = device->allocate(4096, "data").or_raise();
  device->fill(whole(data, 4096), 0).or_raise();
  for (int i = 0; i < 3; ++i) add(*device, whole(data, 4096), 1).or_raise();
  testing::read_blocking(*device, whole(data, 4096));
  device->release(data);
  const auto events = events_of(parsed(trace), "device");
  ASSERT_GE(events.size(), 4u);
  EXPECT_EQ(events[0]["name"], "fill");
  EXPECT_EQ(events[0]["args"]["bytes"], 4096);
  for (size_t i = 1; i <= 3; ++i) {
    EXPECT_EQ(events[i]["name"], "add_u32");
    EXPECT_TRUE(
        events[i]["args"]["site"].get<std::string>().starts_with("tests/device/trace_test.cpp:"))
        << events[i];
    const double end = events[i - 1]["ts"].get<double>() + events[i - 1]["dur"].get<double>();
    EXPECT_GE(events[i]["ts"].get<double>(), end - 1e-3);
  }
}

TEST(TraceOfADevice, HoldsUploadsWithTheirBytes) {
  TraceRecorder trace;
  const auto device = open_device("cpu:1").or_raise();
  device->set_trace(&trace);
  const BufferId data = device->allocate(4096, "data").or_raise();
  const std::vector<uint32_t> values(100, 5);
  device->upload({data, 0, 400}, testing::bytes_of(values)).or_raise();
  device->release(data);
  const auto events = events_of(parsed(trace), "uploads");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0]["args"]["bytes"], 400);
}

TEST(TraceOfADevice, EndsWhereItIsToldTo) {
  TraceRecorder trace;
  const auto device = open_device("cpu:1").or_raise();
  const BufferId data = device->allocate(4096, "data").or_raise();
  device->set_trace(&trace);
  device->set_trace(nullptr);
  add(*device, whole(data, 4096), 1).or_raise();
  testing::read_blocking(*device, whole(data, 4096));
  device->release(data);
  EXPECT_TRUE(events_of(parsed(trace), "device").empty());
}

TEST(TraceOfWaits, EqualsTheLedger) {
  TraceRecorder trace;
  WaitLedger ledger;
  ledger.set_trace(&trace);
  std::mutex mutex;
  std::condition_variable changed;
  std::unique_lock lock(mutex);
  const WaitSite site{WaitReason::Decode, "test.decode"};
  for (int i = 0; i < 3; ++i) {
    ledger.wait_for_blocking(
        lock, changed, [] { return false; }, std::chrono::milliseconds(1), site);
  }
  const auto events = events_of(parsed(trace), "host waits");
  ASSERT_EQ(events.size(), 3u);
  double us = 0;
  for (const auto& event : events) {
    EXPECT_EQ(event["name"], "test.decode");
    EXPECT_EQ(event["args"]["reason"], "Decode");
    EXPECT_EQ(event["args"]["site"], ledger.records().at(0).where);
    us += event["dur"].get<double>();
  }
  EXPECT_NEAR(us, static_cast<double>(ledger.records().at(0).blocked_ns) * 1e-3, 0.01);
}

TEST(TraceFile, IsWrittenWhole) {
  const fs::path path = scratch("deep/trace.json");
  ASSERT_TRUE(check_trace_path(path).ok());
  EXPECT_TRUE(fs::is_empty(path.parent_path())) << "the check leaves nothing behind";
  TraceRecorder trace;
  trace.instant(TraceTrack::Phases, "here");
  ASSERT_TRUE(write_trace(trace, path).ok());
  EXPECT_EQ(read_text_file(path).or_raise(), trace.to_json());
}

TEST(TraceFile, APathThatCannotBeWrittenIsAnOutputError) {
  const fs::path folder = scratch("folder");
  fs::create_directories(folder);
  const fs::path file = folder / "file";
  write_file_atomically(file, "x").or_raise();
  for (const fs::path& path : {folder, file / "trace.json", fs::path("/dev/null")}) {
    const Result<void> checked = check_trace_path(path);
    ASSERT_FALSE(checked.ok()) << path;
    EXPECT_EQ(checked.error().code, ErrorCode::Output);
  }
}

TEST(TraceFile, CheckingLeavesAnEarlierTraceAsItIs) {
  const fs::path path = scratch("trace.json");
  write_file_atomically(path, "earlier").or_raise();
  ASSERT_TRUE(check_trace_path(path).ok());
  EXPECT_EQ(read_text_file(path).or_raise(), "earlier");
}

}  // namespace
}  // namespace millrace
