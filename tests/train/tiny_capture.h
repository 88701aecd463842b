// The captures and options that the training tests share: small enough for hundreds of steps a
// second.
#pragma once

#include <filesystem>
#include <string>

#include "data/dataset.h"
#include "train/trainer.h"

namespace millrace::test {

/// A folder of this process, removed when it ends.
const std::filesystem::path& scratch_folder();

/// A capture of 12 views of 64 x 48 pixels with a text model and some 400 points, made at the first
/// call.
const std::filesystem::path& tiny_capture();

/// Options for a short run on tiny_capture() in which everything happens: refinement every 10
/// steps, SH degrees every 20, Morton order every 25. No output folder is set; nothing is saved or
/// evaluated on the way.
TrainOptions tiny_options(uint32_t iterations);

/// Options for the same with MRNF.
TrainOptions tiny_mrnf_options(uint32_t iterations);
/// Stages as tiny_options() has them, whatever strategy was chosen since.
void set_short_stages(TrainOptions& options);

/// tiny_capture() as loaded with the dataset settings of tiny_options().
const Dataset& tiny_dataset();

/// Trains into a fresh folder; fails the test and returns an empty summary on an error.
TrainSummary train_or_fail(TrainOptions options, const TrainObserver& observer = {});

}  // namespace millrace::test
