// state_sha256 by OpenSSL's digest.
#include "train/state_hash.h"

#include <fmt/format.h>
#include <openssl/evp.h>

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

std::string state_sha256(const ModelSnapshot& snapshot, const HashedProgress& progress) {
  Sha256 hash;
  hash.add("millrace-state-1", 16);
  hash.add_value<uint64_t>(control_of(snapshot).counts.rows);
  hash.add_value<uint32_t>(static_cast<uint32_t>(snapshot.max_sh_degree));
  hash.add_value<uint32_t>(progress.step);
  hash.add_value<uint64_t>(progress.seed);
  for (int i = 0; i < 6; ++i) {
    const std::vector<float> rows = rows_of(snapshot, i);
    hash.add(rows.data(), rows.size() * sizeof(float));
  }
  return hash.hex();
}

}  // namespace millrace
