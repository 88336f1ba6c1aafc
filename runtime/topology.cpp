#include "weft/runtime/topology.hpp"

#include <hwloc.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <memory>

namespace weft {
namespace {

struct DestroyTopology {
  void operator()(hwloc_topology* topology) const noexcept { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, DestroyTopology>;

/// Cores the process may use, each with its hardware threads. Empty where hwloc cannot tell.
std::vector<std::vector<unsigned>> cores_by_hwloc() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return {};
  const Topology topology(raw);
  // Default filters drop what the process is not allowed to use.
  if (hwloc_topology_load(topology.get()) != 0) return {};
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return {};
  std::vector<std::vector<unsigned>> cores;
  const int count = hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_CORE);
  for (int i = 0; i < count; ++i) {
    const hwloc_obj_t core = hwloc_get_obj_by_type(topology.get(), HWLOC_OBJ_CORE, static_cast<unsigned>(i));
    std::vector<unsigned> threads;
    for (int processor = hwloc_bitmap_first(core->cpuset); processor >= 0;
         processor = hwloc_bitmap_next(core->cpuset, processor)) {
      if (processor < CPU_SETSIZE && CPU_ISSET(static_cast<std::size_t>(processor), &allowed)) {
        threads.push_back(static_cast<unsigned>(processor));
      }
    }
    if (!threads.empty()) cores.push_back(std::move(threads));
  }
  return cores;
}

std::vector<std::vector<unsigned>> cores_by_affinity() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  std::vector<std::vector<unsigned>> cores;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
    for (unsigned processor = 0; processor < CPU_SETSIZE; ++processor) {
      if (CPU_ISSET(processor, &allowed)) cores.push_back({processor});
    }
  }
  if (cores.empty()) cores.push_back({0});
  return cores;
}

const std::vector<std::vector<unsigned>>& cores() {
  // A fact about the process, found out once: threads that are bound later would see less.
  static const std::vector<std::vector<unsigned>> all = [] {
    std::vector<std::vector<unsigned>> found = cores_by_hwloc();
    return found.empty() ? cores_by_affinity() : found;
  }();
  return all;
}

std::vector<unsigned> processors_of_this_thread() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  std::vector<unsigned> processors;
  if (::pthread_getaffinity_np(::pthread_self(), sizeof allowed, &allowed) != 0) return processors;
  for (unsigned processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (CPU_ISSET(processor, &allowed)) processors.push_back(processor);
  }
  return processors;
}

void allow_this_thread(const std::vector<unsigned>& processors) noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const unsigned processor : processors) CPU_SET(processor, &set);
  // Fails only where the mask was narrowed from outside meanwhile; then that is what counts.
  ::pthread_setaffinity_np(::pthread_self(), sizeof set, &set);
}

}  // namespace

std::vector<unsigned> available_processors() {
  const std::vector<std::vector<unsigned>>& all = cores();
  std::vector<unsigned> processors;
  for (std::size_t depth = 0;; ++depth) {
    const std::size_t before = processors.size();
    for (const std::vector<unsigned>& threads : all) {
      if (depth < threads.size()) processors.push_back(threads[depth]);
    }
    if (processors.size() == before) return processors;
  }
}

unsigned available_cores() { return static_cast<unsigned>(cores().size()); }

Outcome bind_this_thread(unsigned processor) noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (processor >= CPU_SETSIZE) return Outcome{Errc::invalid_argument, kNoRank, EINVAL};
  CPU_SET(processor, &set);
  const int failed = ::pthread_setaffinity_np(::pthread_self(), sizeof set, &set);
  return failed == 0 ? Outcome() : Outcome{errc_from_errno(failed), kNoRank, failed};
}

void unbind_this_thread() noexcept { allow_this_thread(available_processors()); }

ThreadBinding::ThreadBinding() noexcept = default;

ThreadBinding::~ThreadBinding() {
  if (!before_.empty()) allow_this_thread(before_);
}

Outcome ThreadBinding::bind(unsigned processor) noexcept {
  if (before_.empty()) before_ = processors_of_this_thread();
  return bind_this_thread(processor);
}

void name_this_thread(const std::string& name) noexcept {
  std::string cut = name.substr(0, 15);
  ::pthread_setname_np(::pthread_self(), cut.c_str());
}

}  // namespace weft
