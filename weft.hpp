// Everything a program that uses Weft needs, in one include. Programs that count their compile time include the
// headers they use.
#pragma once

// Tasks and the one thread they run on.
#include "weft/runtime/as_result.hpp"
#include "weft/runtime/as_task.hpp"
#include "weft/runtime/cancellation.hpp"
#include "weft/runtime/channel.hpp"
#include "weft/runtime/clock.hpp"
#include "weft/runtime/deadline.hpp"
#include "weft/runtime/error.hpp"
#include "weft/runtime/event.hpp"
#include "weft/runtime/nursery.hpp"
#include "weft/runtime/reactor.hpp"
#include "weft/runtime/reactor_pool.hpp"
#include "weft/runtime/result.hpp"
#include "weft/runtime/sleep.hpp"
#include "weft/runtime/submit_to.hpp"
#include "weft/runtime/task.hpp"
#include "weft/runtime/topology.hpp"
#include "weft/runtime/when_all.hpp"

// Messages between ranks, and the way from main() into a job.
#include "weft/net/communicator.hpp"
#include "weft/net/message.hpp"
#include "weft/net/run.hpp"

// Collectives.
#include "weft/coll/all_reduce.hpp"
#include "weft/coll/barrier.hpp"
#include "weft/coll/broadcast.hpp"
#include "weft/coll/datatype.hpp"
#include "weft/coll/half.hpp"
#include "weft/coll/reduce_op.hpp"

// Streams, and gradients that travel while they are still being computed.
#include "weft/gpu/bucket_scheduler.hpp"
#include "weft/gpu/host_stream.hpp"
#include "weft/gpu/step_timing.hpp"
#include "weft/gpu/stream.hpp"
