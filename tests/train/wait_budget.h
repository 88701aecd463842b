// Wait budgets: what a run of each preset may cost in host waits and launches (tests/waits/
// budget.json), and what it does cost.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "device/wait_ledger.h"
#include "train/options.h"

namespace millrace::test {

/// A combination of settings: a value for each axis, by name.
using Preset = nlohmann::json;

/// Every combination that the program has. A feature that brings a new value of an axis, or a new
/// axis, adds it here and its rows to budget.json.
std::vector<Preset> all_presets();

/// A row of budget.json.
struct Budget {
  Preset preset;
  uint64_t waits = 0;                                 // in all steady steps together
  uint64_t step = 0, refinement = 0, reordering = 0;  // launches of one transaction, at most
};

/// What a run did in its steady steps.
struct Measured {
  std::vector<WaitRecord> waits;  // every reason but Pacing
  uint64_t step = 0, refinement = 0, reordering = 0;
};

/// Short runs on the tiny capture: refinement every 10 steps, reordering every 25.
TrainOptions options_of(const Preset& preset);
/// Trains `preset` on `device` for `end_step` steps, those from kFirstSteadyStep on measured.
Measured measure_blocking(const Preset& preset, const std::string& device, uint32_t end_step);

std::vector<Budget> read_budgets();

/// What is wrong with the rows as a whole: presets without a row, rows without a preset, doubles.
std::vector<std::string> table_complaints(const std::vector<Preset>& presets,
                                          const std::vector<Budget>& budgets);
/// Where `measured` differs from its budget: each wait site with its reason, file and line; each
/// kind of transaction with its launches, which must be equal, so that a fall is kept.
std::vector<std::string> run_complaints(const Budget& budget, const Measured& measured);

}  // namespace millrace::test
