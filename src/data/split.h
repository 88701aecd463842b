// The hold-out: which views are kept for measuring.
#pragma once

#include "base/result.h"
#include "data/capture.h"
#include "data/dataset.h"

namespace millrace {

/// Sets `held_out` of dataset.views (sorted and indexed). By precedence: options.test_images;
/// train.txt and test.txt in the root; `from_test_file` (a transforms_test.json; one flag per view,
/// empty = there is none); index % test_every == test_fold. Views that both lists leave out are
/// removed. Says in notes what was done unless it is the default rule. Errors: Usage (unknown
/// names, a fold out of range, no training view left).
Result<void> split_views(const DatasetOptions& options, const std::vector<bool>& from_test_file,
                         Dataset& dataset);

}  // namespace millrace
