// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/supervisor/trustedrun.h"

#include "core/base/random.h"
#include "core/gate/supervisor/trialcontext.h"

#include <cstring>

namespace klineage::gate {

namespace {

constexpr double stepLimitSeconds = 60; // to compile it, and to run it: PoCL compiles when it runs
constexpr std::size_t elements = 61;    // no multiple of the block

const char *const openClText = R"cl(/*klineage
surface = "opencl"
[[launch]]
kernel = "trusted"
grid = ["ceil_div(N, 16)"]
block = [16]
args = ["x", "y", "int N"]
*/
__kernel void trusted(__global const uint *x, __global uint *y, int n)
{
    int i = get_global_id(0);
    if (i < n)
        y[i] = x[i] * 2654435761u + (uint)i;
}
)cl";

const char *const cudaText = R"cu(/*klineage
surface = "cuda"
[[launch]]
kernel = "trusted"
grid = ["ceil_div(N, 16)"]
block = [16]
args = ["x", "y", "int N"]
*/
extern "C" __global__ void trusted(const unsigned *x, unsigned *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] * 2654435761u + (unsigned)i;
}
)cu";

WorkerFailure refused(const Error &error)
{
    return {FailureKind::Unavailable, error, {}, {}, 0};
}

WorkerResult<std::vector<std::byte>> binaryOf(const kernel::Candidate &candidate, CompilerSession &compiler,
                                              const WorkerSession &session, const std::stop_token &stop)
{
    if (!candidate.surface->compiledApart)
        return {};
    auto output = compiler.compile({kernel::toString(candidate.surface),
                                    candidate.source,
                                    "trusted",
                                    {},
                                    candidate.surface.device().target(session.helloEnvironment().platform)},
                                   stepLimitSeconds, stop);
    if (!output)
        return tl::unexpected(output.error());
    if (!output->ok)
        return tl::unexpected(
            refused({ErrorCode::Unavailable, output->compiler + " does not compile it.", output->log}));
    return std::move(output->binary);
}

WorkerResult<BufferId> bufferOf(WorkerSession &session, const std::vector<std::uint32_t> &content)
{
    const std::size_t bytes = content.size() * sizeof content.front();
    const auto buffer = session.allocate(bytes);
    if (!buffer)
        return buffer;
    const auto room = session.staging(bytes);
    if (!room)
        return tl::unexpected(room.error());
    std::memcpy(room->data(), content.data(), bytes);
    if (auto uploaded = session.uploadStaged(*buffer, bytes); !uploaded)
        return tl::unexpected(uploaded.error());
    return buffer;
}

WorkerResult<void> attempt(WorkerSession &session, CompilerSession &compiler, ProgramBuilder &builder,
                           kernel::DeviceKind device, const std::stop_token &stop)
{
    const auto candidate = kernel::parseCandidate(device == kernel::DeviceKind::Cuda ? cudaText : openClText,
                                                  "the gate's own kernel");
    if (!candidate)
        return tl::unexpected(refused(candidate.error()));
    const auto binary = binaryOf(*candidate, compiler, session, stop);
    if (!binary)
        return tl::unexpected(binary.error());
    const bool apart = candidate->surface->compiledApart;
    const auto loaded = apart ? session.load(*binary, {}, {}, stepLimitSeconds)
                              : builder.load(session, candidate->source, {}, stepLimitSeconds, stop,
                                             process::Deadline::never());
    if (!loaded)
        return tl::unexpected(loaded.error());
    if (!loaded->module)
        return tl::unexpected(refused({ErrorCode::Unavailable, loaded->error.message, loaded->output.log}));

    std::vector<std::uint32_t> x(elements);
    std::vector<std::uint32_t> expected(elements);
    for (std::size_t i = 0; i < elements; ++i) {
        x[i] = static_cast<std::uint32_t>(entropy());
        expected[i] = x[i] * 2654435761u + static_cast<std::uint32_t>(i);
    }
    const auto in = bufferOf(session, x);
    const auto out = in ? bufferOf(session, std::vector<std::uint32_t>(elements)) : in;
    if (!out)
        return tl::unexpected(out.error());
    const auto count = static_cast<std::int64_t>(elements);
    const auto plan = kernel::resolvePlan(
        *candidate, {{"x", kernel::DType::U32, {count}}, {"y", kernel::DType::U32, {count}}}, {{"N", count}});
    if (!plan)
        return tl::unexpected(refused(plan.error()));
    const auto subject = session.addPlan(*loaded->module, *plan, {{{"x", {*in, 0}}, {"y", {*out, 0}}}});
    if (!subject)
        return tl::unexpected(subject.error());
    if (auto ran = session.run(*subject, 0, stepLimitSeconds); !ran)
        return ran;
    const auto got = session.download(*out, elements * sizeof expected.front());
    if (!got)
        return tl::unexpected(got.error());
    if (std::memcmp(got->data(), expected.data(), got->size()) != 0)
        return tl::unexpected(refused({ErrorCode::Unavailable, "What it computes is wrong.", {}}));
    return session.clear();
}

/// The first line that says what went wrong, of what the tools of the device printed.
std::string firstComplaint(const std::string &output)
{
    const std::string line = firstError(output, {}).text;
    return line.empty() ? output.substr(0, output.find('\n')) : line;
}

} // namespace

WorkerResult<void> runTrustedKernel(WorkerSession &session, CompilerSession &compiler,
                                    ProgramBuilder &builder, kernel::DeviceKind device,
                                    const std::stop_token &stop)
{
    session.beginTrial(stop, process::Deadline::never());
    auto done = attempt(session, compiler, builder, device, stop);
    if (done)
        return done;
    WorkerFailure failure = done.error();
    session.discard();
    if (failure.kind == FailureKind::Cancelled || failure.kind == FailureKind::Killed)
        return tl::unexpected(failure);
    std::string why = failure.error.message;
    const std::string printed = failure.output + failure.error.detail;
    if (failure.kind == FailureKind::Died && failure.exit)
        why = "The worker ended with " + failure.exit->describe() + ".";
    if (!printed.empty())
        why += " Its tools say: " + firstComplaint(printed);
    failure.kind = FailureKind::Unavailable;
    failure.error = {ErrorCode::Unavailable,
                     "This device cannot be used: a small kernel of the gate's own fails on it. " + why,
                     printed};
    return tl::unexpected(failure);
}

} // namespace klineage::gate
