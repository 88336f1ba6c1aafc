#include "weft/net/bootstrap/environment.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <ostream>
#include <string>
#include <string_view>

namespace weft::net {
namespace {

using Variables = std::map<std::string, std::string>;

JobEnvironment read(const Variables& variables) {
  return read_job_environment([&variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

Variables job(const Variables& changes = {}) {
  Variables variables = {{"RANK", "1"},
                         {"WORLD_SIZE", "4"},
                         {"LOCAL_RANK", "1"},
                         {"LOCAL_WORLD_SIZE", "4"},
                         {"MASTER_PORT", "29500"},
                         {"MASTER_ADDR", "10.0.0.1"}};
  for (const auto& [name, value] : changes) {
    if (value == "UNSET")
      variables.erase(name);
    else
      variables[name] = value;
  }
  return variables;
}

TEST(Environment, NothingSetIsAWorldOfOne) {
  const JobEnvironment environment = read({});
  EXPECT_EQ(environment.source, EnvironmentSource::none);
  EXPECT_EQ(environment.rank, 0);
  EXPECT_EQ(environment.world_size, 1);
  EXPECT_EQ(environment.ranks_here, 1);
  EXPECT_EQ(environment.store_fd, -1);
  EXPECT_EQ(environment.timeout, Duration::max());
  EXPECT_EQ(environment.transport, TransportChoice::automatic);
  EXPECT_FALSE(environment.canonical_order);
}

TEST(Environment, SettingsAloneStayAWorldOfOne) {
  const JobEnvironment environment = read({{"WEFT_TRANSPORT", "tcp"},
                                           {"WEFT_ORDER", "canonical"},
                                           {"WEFT_TIMEOUT", "1.5"},
                                           {"WEFT_BIND", "none"},
                                           {"WEFT_IDLE", "block"}});
  EXPECT_EQ(environment.source, EnvironmentSource::none);
  EXPECT_EQ(environment.transport, TransportChoice::tcp);
  EXPECT_TRUE(environment.canonical_order);
  EXPECT_EQ(environment.timeout, std::chrono::milliseconds(1500));
  EXPECT_EQ(environment.bind, BindChoice::none);
  EXPECT_EQ(environment.idle, IdleMode::block);
}

TEST(Environment, ATinyTimeoutDoesNotBecomeNone) {
  EXPECT_EQ(read({{"WEFT_TIMEOUT", "1e-12"}}).timeout, std::chrono::nanoseconds(1));
  EXPECT_EQ(read({{"WEFT_TIMEOUT", "0"}}).timeout, Duration::max());
}

TEST(Environment, AllRanksInOneProcessNeedNoLauncher) {
  const JobEnvironment environment = read({{"WEFT_NUM_RANKS", "3"}, {"WEFT_RANKS_PER_PROCESS", "4"}});
  EXPECT_EQ(environment.source, EnvironmentSource::none);
  EXPECT_EQ(environment.world_size, 3);
  EXPECT_EQ(environment.ranks_here, 3);
}

TEST(Environment, ReadsWhatWeftrunSets) {
  const std::string token(64, 'a');
  const JobEnvironment environment = read(job({{"RANK", "0"},
                                               {"LOCAL_RANK", "0"},
                                               {"WEFT_JOB_TOKEN", token},
                                               {"WEFT_STORE_FD", "5"},
                                               {"WEFT_NUM_RANKS", "4"},
                                               {"WEFT_RANKS_PER_PROCESS", "3"}}));
  EXPECT_EQ(environment.source, EnvironmentSource::weftrun);
  EXPECT_EQ(environment.store_fd, 5);
  EXPECT_EQ(environment.ranks_per_process, 3);
  EXPECT_EQ(environment.ranks_here, 3);
  EXPECT_EQ(environment.master_address, "10.0.0.1");
  EXPECT_EQ(environment.master_port, 29500);
  EXPECT_TRUE(environment.token == *JobToken::from_hex(token));
}

TEST(Environment, TheLastProcessHostsWhatIsLeft) {
  const JobEnvironment environment = read(job({{"RANK", "3"}, {"LOCAL_RANK", "3"}, {"WEFT_RANKS_PER_PROCESS", "3"}}));
  EXPECT_EQ(environment.rank, 3);
  EXPECT_EQ(environment.ranks_here, 1);
}

TEST(Environment, ReadsWhatTorchrunSets) {
  const Variables torchrun = job({{"TORCHELASTIC_RUN_ID", "none"}, {"TORCHELASTIC_RESTART_COUNT", "0"}});
  const JobEnvironment environment = read(torchrun);
  EXPECT_EQ(environment.source, EnvironmentSource::torchrun);
  EXPECT_EQ(environment.master_port, 29500);
  // Expect: all ranks derive one token, and a restarted job another one.
  Variables other_rank = torchrun;
  other_rank["RANK"] = "2";
  other_rank["LOCAL_RANK"] = "2";
  EXPECT_TRUE(environment.token == read(other_rank).token);
  Variables restarted = torchrun;
  restarted["TORCHELASTIC_RESTART_COUNT"] = "1";
  EXPECT_FALSE(environment.token == read(restarted).token);
}

TEST(Environment, TheAgentsOwnPortIsLeftToIt) {
  const Variables agent = job({{"TORCHELASTIC_RUN_ID", "x"}, {"TORCHELASTIC_USE_AGENT_STORE", "True"}});
  EXPECT_EQ(read(agent).master_port, 29501);
  Variables other = agent;
  other["WEFT_STORE_PORT"] = "4000";
  EXPECT_EQ(read(other).master_port, 4000);
  other = agent;
  other["TORCHELASTIC_USE_AGENT_STORE"] = "False";
  EXPECT_EQ(read(other).master_port, 29500);
}

TEST(Environment, LocalRanksAreOptional) {
  const JobEnvironment environment = read(job({{"LOCAL_RANK", "UNSET"}, {"LOCAL_WORLD_SIZE", "UNSET"}}));
  EXPECT_EQ(environment.source, EnvironmentSource::manual);
  EXPECT_EQ(environment.local_rank, 1);
  EXPECT_EQ(environment.local_world_size, 4);
}

TEST(Environment, AWorldOfOneNeedsNoMaster) {
  const JobEnvironment environment = read({{"RANK", "0"}, {"WORLD_SIZE", "1"}});
  EXPECT_EQ(environment.world_size, 1);
  EXPECT_EQ(environment.master_port, 0);
}

struct Refused {
  const char* title;
  bool in_a_job;         ///< the changes are made to job()
  const char* changes;   ///< "NAME=value;NAME=value", UNSET removes
  const char* named;     ///< the variable that the error is about
  const char* contains;  ///< must stand in the message: the value, or what is expected
};

void PrintTo(const Refused& refused, std::ostream* out) {
  *out << refused.title;
}

Variables parse(std::string_view text) {
  Variables variables;
  while (!text.empty()) {
    const std::string_view entry = text.substr(0, text.find(';'));
    const std::size_t equals = entry.find('=');
    variables.emplace(entry.substr(0, equals), entry.substr(equals + 1));
    text.remove_prefix(std::min(text.size(), entry.size() + 1));
  }
  return variables;
}

constexpr bool kJob = true;
constexpr bool kAlone = false;
constexpr Refused kRefused[] = {
    {"RankAlone", kAlone, "RANK=0", "WORLD_SIZE", "is not set, but RANK is"},
    {"WorldSizeAlone", kAlone, "WORLD_SIZE=2", "RANK", "is not set, but WORLD_SIZE is"},
    {"LocalRankAlone", kAlone, "LOCAL_RANK=0", "RANK", "LOCAL_RANK"},
    {"LocalWorldSizeAlone", kAlone, "LOCAL_WORLD_SIZE=2", "RANK", "LOCAL_WORLD_SIZE"},
    {"MasterAddrAlone", kAlone, "MASTER_ADDR=a", "RANK", "MASTER_ADDR"},
    {"MasterPortAlone", kAlone, "MASTER_PORT=1", "RANK", "MASTER_PORT"},
    {"RunIdAlone", kAlone, "TORCHELASTIC_RUN_ID=a", "RANK", "TORCHELASTIC_RUN_ID"},
    {"TokenAlone", kAlone, "WEFT_JOB_TOKEN=x", "RANK", "WEFT_JOB_TOKEN"},
    {"StoreFdAlone", kAlone, "WEFT_STORE_FD=3", "WEFT_STORE_FD", "weftrun"},
    {"NumRanksAlone", kAlone, "WEFT_NUM_RANKS=4", "WEFT_NUM_RANKS", "weftrun"},
    {"RankOutside", kAlone, "RANK=5;WORLD_SIZE=2", "RANK", "5 is outside of a world with WORLD_SIZE=2"},
    {"RankEqualsSize", kJob, "RANK=4", "RANK", "0 to 3"},
    {"RankNegative", kJob, "RANK=-1", "RANK", "'-1'"},
    {"RankEmpty", kJob, "RANK=", "RANK", "''"},
    {"RankText", kJob, "RANK=one", "RANK", "'one'"},
    {"RankWithSign", kJob, "RANK=+1", "RANK", "'+1'"},
    {"RankWithBlank", kJob, "RANK=1 ", "RANK", "'1 '"},
    {"RankHuge", kJob, "RANK=99999999999999999999", "RANK", "99999999999999999999"},
    {"D21SlurmList", kJob, "WORLD_SIZE=2(x3),1", "WORLD_SIZE", "'2(x3),1'"},
    {"WorldSizeZero", kJob, "WORLD_SIZE=0", "WORLD_SIZE", "'0'"},
    {"WorldSizeFraction", kJob, "WORLD_SIZE=4.0", "WORLD_SIZE", "'4.0'"},
    {"WorldSizeHuge", kJob, "WORLD_SIZE=1000000000", "WORLD_SIZE", "65536"},
    {"NoMasterAddr", kJob, "MASTER_ADDR=UNSET", "MASTER_ADDR", "is not set"},
    {"MasterAddrEmpty", kJob, "MASTER_ADDR=", "MASTER_ADDR", "is empty"},
    {"NoMasterPort", kJob, "MASTER_PORT=UNSET", "MASTER_PORT", "is not set"},
    {"MasterPortZero", kJob, "MASTER_PORT=0", "MASTER_PORT", "1 to 65535"},
    {"MasterPortTooLarge", kJob, "MASTER_PORT=70000", "MASTER_PORT", "'70000'"},
    {"LocalRankOutside", kJob, "LOCAL_RANK=4", "LOCAL_RANK", "LOCAL_WORLD_SIZE=4"},
    {"LocalSizeOutside", kJob, "LOCAL_WORLD_SIZE=5", "LOCAL_WORLD_SIZE", "WORLD_SIZE=4"},
    {"LocalSizeWithoutRank", kJob, "LOCAL_RANK=UNSET", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"NumRanksContradicts", kJob, "WEFT_NUM_RANKS=3", "WEFT_NUM_RANKS", "WORLD_SIZE=4"},
    {"RankInsideABlock", kJob, "WEFT_RANKS_PER_PROCESS=2", "RANK", "multiple"},
    {"StoreFdElsewhere", kJob, "WEFT_STORE_FD=3", "WEFT_STORE_FD", "rank 1"},
    {"StoreFdText", kJob, "RANK=0;WEFT_STORE_FD=x", "WEFT_STORE_FD", "'x'"},
    {"TokenShort", kJob, "WEFT_JOB_TOKEN=abc", "WEFT_JOB_TOKEN", "64 hex digits"},
    {"TransportUnknown", kAlone, "WEFT_TRANSPORT=foo", "WEFT_TRANSPORT", "'foo'"},
    {"TransportVerbs", kAlone, "WEFT_TRANSPORT=verbs", "WEFT_TRANSPORT", "has no verbs transport"},
    {"TransportSim", kAlone, "WEFT_TRANSPORT=sim", "WEFT_TRANSPORT", "has no sim transport"},
    {"OrderUnknown", kAlone, "WEFT_ORDER=random", "WEFT_ORDER", "canonical"},
    {"TimeoutNegative", kAlone, "WEFT_TIMEOUT=-1", "WEFT_TIMEOUT", "'-1'"},
    {"TimeoutText", kAlone, "WEFT_TIMEOUT=5s", "WEFT_TIMEOUT", "'5s'"},
    {"TimeoutInfinite", kAlone, "WEFT_TIMEOUT=inf", "WEFT_TIMEOUT", "'inf'"},
    {"BindUnknown", kAlone, "WEFT_BIND=socket", "WEFT_BIND", "core or none"},
    {"IdleUnknown", kAlone, "WEFT_IDLE=sleep", "WEFT_IDLE", "spin"},
    {"LogUnknown", kAlone, "WEFT_LOG=loud", "WEFT_LOG", "warning"},
    {"RanksPerProcessZero", kAlone, "WEFT_RANKS_PER_PROCESS=0", "WEFT_RANKS_PER_PROCESS", "'0'"},
};

class RefusedEnvironment : public ::testing::TestWithParam<Refused> {};

// D22 and its relatives: partial, contradictory and malformed environments.
TEST_P(RefusedEnvironment, NamesTheVariableAndWhatIsExpected) {
  const Refused& refused = GetParam();
  const Variables changes = parse(refused.changes);
  try {
    static_cast<void>(read(refused.in_a_job ? job(changes) : changes));
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::bad_environment);
    EXPECT_EQ(error.operation(), refused.named);
    EXPECT_NE(std::string(error.what()).find(refused.contains), std::string::npos) << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(D22, RefusedEnvironment, ::testing::ValuesIn(kRefused),
                         [](const auto& refused) { return std::string(refused.param.title); });

TEST(Environment, AMalformedTokenIsNotShown) {
  const std::string secret = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdeX";
  try {
    static_cast<void>(read(job({{"WEFT_JOB_TOKEN", secret}})));
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find("0123"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace weft::net
