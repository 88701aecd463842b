// state_sha256 by OpenSSL's digest.
#include "train/state_hash.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <memory>

namespace millrace {
namespace {

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    if (!context_ || EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) != 1) {
      raise({ErrorCode::Internal, "SHA-256 is not available from libcrypto"});
    }
  }
  void add(const void* bytes, size_t n) { EVP_DigestUpdate(context_.get(), bytes, n); }
  template <class T>
  void add_value(T value) {
    add(&value, sizeof(value));
  }
  std::string hex() {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int n = 0;
    EVP_DigestFinal_ex(context_.get(), digest, &n);
    std::string out;
    for (unsigned int i = 0; i < n; ++i) out += fmt::format("{:02x}", digest[i]);
    return out;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

}  // namespace

Result<std::string> state_sha256_blocking(const Model& model, const HashedProgress& progress,
                                          std::span<const Tensor> more) {
  Device& device = *model.device;
  const Ticket control = read_later(model.control);
  MILLRACE_TRY(device.wait_blocking(control.point(), {WaitReason::UserRead, "state_hash.control"}));
  const auto state = control.as<Control>();
  const uint64_t n = state.counts.rows;
  Sha256 hash;
  hash.add("millrace-state-1", 16);
  hash.add_value<uint64_t>(n);
  hash.add_value<uint32_t>(static_cast<uint32_t>(model.max_sh_degree));
  hash.add_value<uint32_t>(progress.step);
  hash.add_value<uint64_t>(progress.seed);
  constexpr uint64_t kRowsAtOnce = 32 * kRowBlock;
  const auto n_blocks = static_cast<int64_t>((n + kRowBlock - 1) / kRowBlock);
  const auto add_rows = [&](const Tensor& tensor, uint32_t lanes) -> Result<void> {
    const Ticket ticket = read_later(tensor.slice(0, 0, n_blocks));
    MILLRACE_TRY(device.wait_blocking(ticket.point(), {WaitReason::UserRead, "state_hash.rows"}));
    const auto* blocks = reinterpret_cast<const float*>(ticket.bytes().data());
    for (uint64_t begin = 0; begin < n; begin += kRowsAtOnce) {
      const std::vector<float> rows =
          from_row_blocks(blocks, begin, std::min(n, begin + kRowsAtOnce), lanes);
      hash.add(rows.data(), rows.size() * sizeof(float));
    }
    return {};
  };
  for (const ParameterGroup* group : {&model.geometry, &model.sh_rest}) {
    if (group->lanes == 0) continue;
    for (const Tensor* tensor : {&group->value, &group->first_moment, &group->second_moment}) {
      MILLRACE_TRY(add_rows(*tensor, group->lanes));
    }
  }
  if (model.statistics.defined()) {
    hash.add("statistics", 10);
    hash.add_value<uint64_t>(state.counts.free);
    hash.add(&state.bounds, sizeof(state.bounds));
    MILLRACE_TRY(add_rows(model.statistics, kStatisticLanes));
  }
  for (const Tensor& tensor : more) {
    const Ticket ticket = read_later(tensor);
    MILLRACE_TRY(device.wait_blocking(ticket.point(), {WaitReason::UserRead, "state_hash.more"}));
    hash.add_value<uint64_t>(tensor.numel());
    hash.add(ticket.bytes().data(), tensor.bytes());
  }
  return hash.hex();
}

}  // namespace millrace
