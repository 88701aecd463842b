// ImageLoader: decodes training photographs on background threads into a cache with a byte budget.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/image.h"
#include "device/wait_ledger.h"

namespace millrace {

struct ImageLoaderOptions {
  int n_threads = 2;
  uint64_t cache_bytes =
      4ull << 30;  // decoded pixels kept; views asked for but not yet taken are always kept
  std::array<float, 3> background = {0, 0, 0};
  double artificial_delay_ms = 0;  // tests: makes every decode slower
};

/// Thread-safe for one consumer thread. Images handed out stay valid while the shared pointer
/// lives.
class ImageLoader {
 public:
  ImageLoader(std::vector<View> views, const ImageLoaderOptions& options, WaitLedger& ledger);
  ~ImageLoader();

  /// Asks for `view` (position in the vector given at construction) to be decoded soon. Never
  /// waits.
  void prefetch(uint32_t view);
  /// The image if it is in memory, else null (and it is asked for). Never waits.
  std::shared_ptr<const Image8> try_get(uint32_t view);
  /// The image, waiting for its decode if it must (ledger reason Decode). Error: the file's, with
  /// its path.
  Result<std::shared_ptr<const Image8>> get_blocking(uint32_t view);
  /// Views that were asked for and whose decode has not ended.
  size_t undecoded() const;
  /// Bytes of decoded pixels in memory now.
  uint64_t cached_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Host memory that a loader of `views` takes, at most, if never more than `n_ahead` views are
/// asked for ahead and one is taken at a time.
uint64_t image_loader_bytes(const std::vector<View>& views, const ImageLoaderOptions& options,
                            uint32_t n_ahead);

}  // namespace millrace
