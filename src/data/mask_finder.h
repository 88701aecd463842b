// Which mask belongs to which photograph (PRODUCT.md 3.8).
#pragma once

#include "base/result.h"
#include "data/dataset.h"

namespace millrace {

/// With options.use_masks: gives the views their masks, files of a mask folder or else their own
/// alpha, and says in `dataset.notes` what was found. Some views may be without. Without use_masks:
/// only notes that there is a mask folder.
///
/// A mask belongs to the photograph of its relative path, or else of its file name, whatever the
/// letter case: for a.jpg those are a.png, a.jpg.png, a.mask.png, a_mask.png and a.png.mask, and
/// the same with any other image ending. Errors: Usage if options.masks is no folder, or if there
/// is no mask at all; Dataset, naming the file, for a mask that cannot be read or that has not the
/// shape of its photograph.
Result<void> find_masks(const DatasetOptions& options, Dataset& dataset);

/// Whether the view has a mask.
inline bool has_mask(const View& view) { return view.mask_from_alpha || !view.mask_path.empty(); }

/// Planes of the view as a training target: three of colour, and its mask.
inline uint64_t n_target_planes(const View& view) { return has_mask(view) ? 4 : 3; }

}  // namespace millrace
