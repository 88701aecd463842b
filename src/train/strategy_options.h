// What the strategies' settings begin with, and settings that follow from others.
#pragma once

#include <string>

#include "train/options.h"

namespace millrace {

/// "mrnf" for its aliases "mnrf" and "lfs"; any other name as it is.
std::string canonical_strategy(const std::string& name);

/// Changes to the strategy `name`, with its defaults for every setting that has one of its own;
/// nothing if it is the strategy already. An unknown name is checked_options' concern.
void use_strategy(TrainOptions& options, const std::string& name);

/// With numbers for all settings that follow from others: ends of stages from the iterations,
/// MRNF's rate of the colour and growth from max_cap (TRAINING.md 1.5, 3.1). Before steps are
/// scaled.
TrainOptions resolved_options(const TrainOptions& options);

}  // namespace millrace
