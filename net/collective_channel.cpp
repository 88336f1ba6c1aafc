#include "weft/net/collective_channel.hpp"

namespace weft::net {

CollectiveChannel::CollectiveChannel(Communicator& communicator, const char* name, std::uint32_t signature,
                                     Group::DescribeSignature describe)
    : group_(communicator.group()) {
  group_.set_describe(describe);
  active_.sequence = group_.next_sequence();
  active_.signature = signature;
  name_ = OperationName{name, active_.sequence, signature};
  group_.begin(active_);
  if (group_.broken().ok()) return;
  group_.end(active_);
  const Outcome& broken = group_.broken();
  throw Error(broken.code, std::string(name) + "#" + std::to_string(active_.sequence), group_.broken_cause(),
              broken.peer, broken.native);
}

CollectiveChannel::~CollectiveChannel() { group_.end(active_); }

}  // namespace weft::net
