// Opening the device of a run, and the dataset settings that the options hold.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "data/dataset.h"
#include "device/device.h"
#include "train/options.h"

namespace millrace {

/// Opens `id` with `threads` cpu threads (0 = all). With MILLRACE_CHECKED=1 in the environment
/// every call to the device is checked; tests run so.
Result<std::unique_ptr<Device>> open_training_device(const std::string& id, int threads);

DatasetOptions dataset_options(const TrainOptions& options);

}  // namespace millrace
