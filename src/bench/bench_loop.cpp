// The order of the runs, and what happens to each.
#include "bench/bench_loop.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <thread>

#include "base/file.h"
#include "bench/child_process.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using std::chrono::steady_clock;

constexpr size_t kShownLines = 12;  // of a run that failed
constexpr int kInterruptedExit = static_cast<int>(ErrorCode::Interrupted);

const char* name_of(size_t side) { return side == 0 ? "A" : "B"; }

/// The code of an error for a child's exit code: the same where the code is one of ours.
ErrorCode error_code_of(int exit_code) {
  return exit_code >= static_cast<int>(ErrorCode::Usage) &&
                 exit_code <= static_cast<int>(ErrorCode::Output)
             ? static_cast<ErrorCode>(exit_code)
             : ErrorCode::Internal;
}

class Bench {
 public:
  Bench(const BenchOptions& options, const BenchObserver& observer, const std::atomic<bool>& stop)
      : options_(options), observer_(observer), stop_(stop) {}

  Result<BenchOutcome> run_blocking();

 private:
  /// False if the bench ends here: failed or stopped.
  Result<bool> one_run_blocking(uint32_t position, bool is_warm_up);
  Result<void> write_files() const;
  /// Removes what is large in a run's folder, unless it is wanted.
  void drop_model(const fs::path& folder) const;
  Error failure_of(const std::string& title, int exit_code, const fs::path& log) const;

  const BenchOptions& options_;
  const BenchObserver& observer_;
  const std::atomic<bool>& stop_;
  const steady_clock::time_point begin_ = steady_clock::now();
  WaitLedger ledger_;
  BenchOutcome outcome_;
};

Result<BenchOutcome> Bench::run_blocking() {
  BenchReport& report = outcome_.report;
  report.date = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  report.command = options_.command;
  report.dataset = options_.dataset;
  report.cores = std::thread::hardware_concurrency();
  report.pairs = options_.pairs;
  report.warm_up = options_.warm_up;
  for (const BenchOptions::Side& side : options_.sides) {
    report.sides.push_back({side.flags, side.binary.string()});
  }
  for (uint32_t i = 0; i < options_.warm_up; ++i) {
    MILLRACE_ASSIGN(const bool goes_on, one_run_blocking(i, /*is_warm_up=*/true));
    if (!goes_on) return outcome_;
  }
  const auto n_runs = static_cast<uint32_t>(options_.pairs * options_.sides.size());
  for (uint32_t i = 0; i < n_runs; ++i) {
    MILLRACE_ASSIGN(const bool goes_on, one_run_blocking(i, /*is_warm_up=*/false));
    if (!goes_on) return outcome_;
  }
  return outcome_;
}

Result<bool> Bench::one_run_blocking(uint32_t position, bool is_warm_up) {
  const size_t side_index = side_at(position, options_.sides.size());
  const BenchOptions::Side& side = options_.sides[side_index];
  const auto n_runs = static_cast<uint32_t>(options_.pairs * options_.sides.size());
  const std::string title =
      fmt::format("{} {} of {} ({})", is_warm_up ? "warm-up" : "run", position + 1,
                  is_warm_up ? options_.warm_up : n_runs, name_of(side_index));
  const fs::path folder = options_.output / "runs" /
                          fmt::format("{}{:02d}-{}", is_warm_up ? "warm-up-" : "", position + 1,
                                      side_index == 0 ? "a" : "b");
  const fs::path log = folder.string() + ".log";
  std::error_code ec;
  fs::remove_all(folder, ec);
  fs::create_directories(folder.parent_path(), ec);
  std::vector<std::string> words = {side.binary.string()};
  words.insert(words.end(), side.arguments.begin(), side.arguments.end());
  words.insert(words.end(), {"--output", folder.string(), "--overwrite"});

  const double start_s = std::chrono::duration<double>(steady_clock::now() - begin_).count();
  const auto tell = [&] {
    if (!observer_.progress) return;
    const std::vector<std::string> last = last_lines(log, 1);
    observer_.progress(title + ": " + (last.empty() ? "starting" : last.front()));
  };
  const Result<ProcessEnd> ended = run_process_blocking(ledger_, words, log, stop_, tell);
  if (!ended.ok() || (ended.value().exit_code != 0 && !stop_.load())) {
    Error failure = ended.ok() ? failure_of(title, ended.value().exit_code, log) : ended.error();
    if (ended.ok() && ended.value().exit_code == kInterruptedExit) {
      failure.code = ErrorCode::Interrupted;
      outcome_.report.interrupted = true;
    }
    outcome_.report.failure = failure.message;
    outcome_.failure = std::move(failure);
    MILLRACE_TRY(write_files());
    return false;
  }
  // A run that Ctrl-C ended trained fewer steps than the others and counts for nothing.
  if (stop_.load() || ended.value().exit_code != 0) {
    outcome_.report.interrupted = true;
    drop_model(folder);
    MILLRACE_TRY(write_files());
    return false;
  }
  const fs::path report_file = folder / "report.json";
  Result<std::string> text = read_text_file(report_file, ErrorCode::Internal);
  Result<RunRecord> record = text.ok() ? record_of_report(text.value(), report_file.string())
                                       : Result<RunRecord>(text.error());
  if (!record.ok()) {
    outcome_.report.failure = record.error().message;
    outcome_.failure = record.error();
    MILLRACE_TRY(write_files());
    return false;
  }
  drop_model(folder);
  RunRecord run = std::move(record).value();
  if (observer_.run_ended) {
    observer_.run_ended(fmt::format("{}: {:.3f} ms per step, {:.1f} s in all", title,
                                    run.ms_per_step, ended.value().seconds));
  }
  if (is_warm_up) return true;
  run.side = side_index;
  run.pair = position / static_cast<uint32_t>(options_.sides.size());
  run.start_s = start_s;
  run.seconds = ended.value().seconds;
  outcome_.report.runs.push_back(std::move(run));
  MILLRACE_TRY(write_files());
  return true;
}

Error Bench::failure_of(const std::string& title, int exit_code, const fs::path& log) const {
  std::string message =
      fmt::format("{} failed with exit code {}; it said ({}):", title, exit_code, log.string());
  const std::vector<std::string> lines = last_lines(log, kShownLines);
  for (const std::string& line : lines) message += "\n  " + line;
  if (lines.empty()) message += " nothing";
  return {error_code_of(exit_code), message};
}

void Bench::drop_model(const fs::path& folder) const {
  if (options_.keep_runs) return;
  std::error_code ec;  // what cannot be removed harms nothing
  for (const char* name : {"point_cloud", "renders", "contact_sheet.png"}) {
    fs::remove_all(folder / name, ec);
  }
}

Result<void> Bench::write_files() const {
  MILLRACE_TRY(
      write_file_atomically(options_.output / "bench.json", to_json_text(outcome_.report)));
  return write_file_atomically(options_.output / "bench.svg", bench_svg(outcome_.report));
}

}  // namespace

Result<void> check_binaries(const BenchOptions& options) {
  for (const BenchOptions::Side& side : options.sides) {
    std::error_code ec;
    if (!fs::exists(side.binary, ec)) {
      return Error{ErrorCode::Usage, fmt::format("there is no program {}", side.binary.string())};
    }
    if (fs::is_directory(side.binary, ec) || ::access(side.binary.c_str(), X_OK) != 0) {
      return Error{ErrorCode::Usage,
                   fmt::format("{} is not a program that may be run", side.binary.string())};
    }
  }
  return {};
}

Result<BenchOutcome> run_bench_blocking(const BenchOptions& options, const BenchObserver& observer,
                                        const std::atomic<bool>& stop) {
  MILLRACE_TRY(check_binaries(options));
  return Bench(options, observer, stop).run_blocking();
}

fs::path this_program() {
  std::error_code ec;
  return fs::read_symlink("/proc/self/exe", ec);
}

}  // namespace millrace
