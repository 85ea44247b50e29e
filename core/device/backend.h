// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"
#include "core/device/blend.h"
#include "core/device/tileprint.h"
#include "core/kernel/plan.h"
#include "core/trial/listing.h"
#include "core/trial/trial.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace klineage::gate {

/// What a compiler decided about a launch of the plan, where the language leaves that to it.
struct CompiledLaunch {
    struct Map {
        std::vector<std::int64_t> box; ///< outermost first
        kernel::Swizzle swizzle = kernel::Swizzle::None;
        /// Where the compiler makes it itself: of the tensor that this argument of the plan's is. Otherwise the plan has the map.
        std::optional<std::size_t> argument{};
        std::vector<std::string> dims{};    ///< of its own: expressions of the plan's, outermost first
        std::vector<std::string> strides{}; ///< of its own: the same in elements, the innermost left out
        kernel::L2Promotion promotion = kernel::L2Promotion::None; ///< of its own
        kernel::TensorMapFill fill = kernel::TensorMapFill::Zero;  ///< of its own
    };
    std::string kernel;       ///< its name in the binary
    std::int64_t threads = 0; ///< in a block
    std::int64_t sharedBytes = 0;
    std::int64_t scratchBytes =
        0;                     ///< of memory that each block has to itself, behind the first of `pointers`
    std::int64_t pointers = 0; ///< that it takes behind the plan's arguments; those to nothing may be null
    std::vector<Map> maps;     ///< one a tensor map among the arguments, in their order
    /// What the kernel takes, where that is not the plan's arguments in their order: the places of those, and -1 - n for the map n.
    std::optional<std::vector<std::int64_t>> takes{};
};

/// Texts of headers by the names that they are included by.
using HeaderTexts = std::map<std::string, std::string>;

/// What the compiler made of a candidate. A candidate that does not compile is a value, not an Error.
struct CompileOutput {
    bool ok = false;
    std::string log;
    std::vector<std::byte>
        binary; ///< cubin, or the OpenCL program binary (may be empty when the backend keeps it)
    std::vector<Metric> metrics; ///< registers, static_shared, spills, binary_bytes, per kernel where known
    std::string compiler;        ///< "nvrtc 13.0", "pocl 3.1 (LLVM 15.0.6)"
    bool usesLocal =
        true; ///< CUDA: threads may write to memory of their own, in frames or at an address, whatever attributes say
    std::vector<CompiledLaunch>
        launches{}; ///< one a launch of the plan, where the compiler decides about them
};

/// A vendor routine bound to concrete sizes. args: role -> buffer name; sizes: "m", "n", "k", "rows", "cols", …
struct ReferenceCall {
    std::string provider;
    std::string op;
    std::map<std::string, std::string> buffers;
    std::map<std::string, std::int64_t> sizes;
};

using BufferId = std::uint32_t;
using ModuleId = std::uint32_t;
using SubjectId = std::uint32_t;

/// Name -> (buffer, offset in bytes of the first element: red zones come before and after it).
struct BufferBinding {
    BufferId buffer = 0;
    std::size_t offsetBytes = 0;
};
using BufferSet = std::map<std::string, BufferBinding>;

/// Bytes that the worker refills before each timed sample: those of an output, or of a workspace.
struct FillRegion {
    BufferId buffer = 0;
    std::size_t offsetBytes = 0;
    std::size_t bytes = 0;
    bool written = true; ///< by the side's runs on the set; false: another side's workspace
};
/// One entry a buffer set.
using FillSets = std::vector<std::vector<FillRegion>>;

/// Copies of a tensor in one buffer, each between two zones that nobody may write to.
struct GuardedCopies {
    BufferId buffer = 0;
    std::vector<std::size_t> places; ///< where each begins, with its zone
    std::size_t placeBytes = 0;      ///< of a copy with its zones
    std::size_t offsetBytes = 0;     ///< the zone before the tensor
    std::size_t bytes = 0;           ///< of the tensor
    BufferId zones = 0;              ///< what they hold: the zone before, and then the one after
};
struct ModuleVariable {
    ModuleId module = 0;
    std::string name;
    std::size_t bytes = 0;
};
/// All of the buffers that candidates could keep something in and nobody else writes to: put back before each timed sample.
struct Guards {
    std::vector<GuardedCopies> copies;
    std::vector<FillRegion> slack;         ///< of buffers, behind what is used of them: refilled
    std::vector<ModuleVariable> variables; ///< that no run may change, as they are now
};

/// The outputs that are looked at after each timed sample: the same number in each set, cut alike.
struct OutputSets {
    std::vector<TileLayout> layouts;              ///< one an output
    std::vector<std::vector<BufferBinding>> sets; ///< [set][output]
    std::uint32_t key = 0;                        ///< of the fingerprints

    [[nodiscard]] std::size_t tilesPerSet() const
    {
        std::size_t tiles = 0;
        for (const TileLayout &layout : layouts)
            tiles += layout.tiles();
        return tiles;
    }
};

/// Bytes to copy from one buffer to another, or to make of two.
struct CopyRange {
    BufferId to = 0;
    std::size_t toOffset = 0;
    BufferId from = 0;
    std::size_t fromOffset = 0;
    std::size_t bytes = 0;
    BufferId with = 0; ///< 0: a copy. The second content, which begins at fromOffset too
    Blend blend{};     ///< how they are made one
};

/// One sample: `repeats` runs back to back, over the sets first, first + 1, … (modulo their number).
struct TimedRun {
    SubjectId subject = 0;
    std::size_t first = 0;
    int repeats = 1;
    std::uint32_t fillWord =
        0; ///< the fill regions of these sets are filled with it first, untimed; 0: they are left, and not looked at
    bool replay = true; ///< CUDA: as a graph; false: launched one by one
    /// What the sets' inputs hold, as setContents() says; 0: what they held before.
    std::uint64_t content = 0;
    int around = 0; ///< sets that are looked at, from `first` on, if those are more than run
    /// Put into inputs after their content was made, and gone when it is made anew: contents whose results are known.
    std::vector<CopyRange> known{};
    /// After so many runs `then` is put into inputs of sets whose turn is yet to come, or has been: what a run has done
    /// ahead for them, or puts off, is wrong now. 0: never.
    int midway = 0;
    std::vector<CopyRange> then{};

    [[nodiscard]] bool isSplit() const { return midway > 0 && midway < repeats; }
    /// How many sets it concerns, each once, of so many.
    [[nodiscard]] std::size_t setsConcerned(std::size_t sets) const
    {
        return std::min(static_cast<std::size_t>(std::max(repeats, around)), sets);
    }
};

/// Where the warps of some runs stood.
struct SampledCode {
    std::vector<ListedInstruction>
        instructions;            ///< those that were hit, with their lines, without their text
    std::vector<Metric> metrics; ///< pc_samples, pc_samples_dropped, pc_sample_period
};

struct TimedSample {
    double ns = 0;       ///< of one run; as a backend says it, of all of them: the supervisor divides
    double clockMhz = 0; ///< cycles over nanoseconds around the sample; 0: not known
    /// Of the outputs as the sample left them, launch by launch: [launch][output][tile]. Empty without fill word or setOutputs().
    std::vector<TilePrint> prints{};
    /// CUDA: what the sample changed though none of its runs may: a byte of a buffer, or (buffer 0) the offset-th of Guards::variables, or,
    /// where the offset is their number, memory that the driver keeps for itself.
    std::optional<BufferBinding> touched{};
};

/// What the device says that replaying a subject for a while used.
struct EnergyReading {
    double joules = 0;
    double seconds = 0;
    std::int64_t runs = 0;
    double resolutionJoules = 0; ///< the smallest step that the counter was seen to make
};

/// A device in the worker process: it executes, and judges nothing. One thread. Any Error from it ends the worker.
/// An error the *candidate* causes (illegal address, launch failure) has ErrorCode::InvalidInput and the driver's words.
class Backend
{
public:
    virtual ~Backend() = default;

    /// sm_count, warp_size, max_shared: names for expressions.
    [[nodiscard]] virtual kernel::Bindings deviceFacts() const = 0;
    /// Device, driver, clocks, temperature as they are now.
    [[nodiscard]] virtual Environment environment() const = 0;
    /// Bytes of the last-level cache that timing must not reuse (0: unknown).
    [[nodiscard]] virtual std::size_t cacheBytes() const = 0;

    /// Loads a module. CUDA: binary is a cubin; OpenCL: binary may be empty, then source is compiled. Logs go to output.
    [[nodiscard]] virtual Result<ModuleId> load(std::span<const std::byte> binary, const std::string &source,
                                                const std::map<std::string, std::int64_t> &tunables,
                                                CompileOutput &output) = 0;
    virtual void unload(ModuleId module) = 0;
    /// The bytes that a module's variable holds now. Only CUDA modules have such.
    [[nodiscard]] virtual Status readGlobal(ModuleId, const std::string &name, std::span<std::byte>)
    {
        return fail(ErrorCode::InvalidInput,
                    "Cannot read the variable " + name + ": modules of this surface have none.");
    }

    [[nodiscard]] virtual Result<BufferId> allocate(std::size_t bytes) = 0; ///< at least 256-byte aligned
    /// Where the device can have it so, at an address that cannot be told from those of other buffers. Such a buffer is not shared.
    [[nodiscard]] virtual Result<BufferId> allocateHidden(std::size_t bytes) { return allocate(bytes); }
    /// A buffer that has memory at some places alone: who reaches anywhere else is ended. Bytes and places: whole pages of 2 MiB.
    [[nodiscard]] virtual Result<BufferId> scatter(std::size_t, std::size_t, const std::vector<std::size_t> &)
    {
        return fail(ErrorCode::Unavailable, "Buffers of this device are one piece.");
    }
    virtual void release(BufferId buffer) = 0;
    [[nodiscard]] virtual Status upload(BufferId buffer, std::size_t offset,
                                        std::span<const std::byte> image) = 0;
    [[nodiscard]] virtual Status download(BufferId buffer, std::size_t offset,
                                          std::span<std::byte> image) = 0;
    /// What another process needs to open the buffer, and the buffer that another process shares, as it lies in the device's memory. It
    /// must stay as long as it is open.
    [[nodiscard]] virtual Result<std::string> share(BufferId)
    {
        return fail(ErrorCode::Unavailable, "Buffers of this device cannot be shared between processes.");
    }
    [[nodiscard]] virtual Result<BufferId> adopt(const std::string &, std::size_t)
    {
        return fail(ErrorCode::Unavailable, "Buffers of this device cannot be shared between processes.");
    }
    [[nodiscard]] virtual Status copy(std::span<const CopyRange> ranges) = 0;
    /// Modules of the gate itself (binary), such as those that refill and probe. Backends that need none ignore it.
    [[nodiscard]] virtual Status installHelpers(std::span<const std::byte>) { return {}; }

    /// A subject is something that can be run and timed: a plan over rotating buffer sets, or a vendor reference. Tensor maps are
    /// encoded here. All sets have the same names: the tensors' and the plan's workspaces'. Workspaces with WorkspaceInit::Zero are
    /// cleared by the backend before each run, inside the timed region; the others are left as they are.
    [[nodiscard]] virtual Result<SubjectId> addPlan(ModuleId module, const kernel::ResolvedPlan &plan,
                                                    const std::vector<BufferSet> &sets) = 0;
    /// ErrorCode::Unavailable when the library is not installed.
    [[nodiscard]] virtual Result<SubjectId> addReference(const ReferenceCall &call,
                                                         const std::vector<BufferSet> &sets) = 0;
    /// Compiles what the plan's launches need, without running any of it; nothing where the device compiles all of it in load().
    [[nodiscard]] virtual Status prime(ModuleId, const kernel::ResolvedPlan &) { return {}; }
    /// From here on the process can load and compile nothing more, start nothing and open nothing; what was primed runs. times: whether
    /// time() is to come. False: this device or system cannot do that, and nothing has changed.
    [[nodiscard]] virtual Result<bool> seal(bool) { return false; }
    virtual void removeSubject(SubjectId subject) = 0;
    /// Gives a reference other buffers (plans are added anew). fills: see TimedRun.
    [[nodiscard]] virtual Status rebind(SubjectId subject, const std::vector<BufferSet> &sets) = 0;
    [[nodiscard]] virtual Status setFills(SubjectId subject, const FillSets &fills) = 0;
    /// For all subjects. Nothing where buffers lie apart.
    [[nodiscard]] virtual Status setGuards(const Guards &) { return {}; }
    /// The inputs of each set, to which no run may write, and how those that are blends are made, each with a key of its own (contentKey()):
    /// before a sample whose content a set does not hold it is made. What is a copy keeps what it holds.
    [[nodiscard]] virtual Status setContents(const std::vector<std::vector<CopyRange>> &) { return {}; }
    /// What time() looks at from now on.
    [[nodiscard]] virtual Status setOutputs(SubjectId subject, const OutputSets &outputs) = 0;
    /// "openblas 0.3.21 (2 threads)"; empty for plans.
    [[nodiscard]] virtual std::string subjectVersion(SubjectId subject) const = 0;
    /// Facts known once a plan exists: occupancy, blocks, waves per launch.
    [[nodiscard]] virtual std::vector<Metric> subjectMetrics(SubjectId subject) const = 0;

    /// Runs once on the given set and waits.
    [[nodiscard]] virtual Status run(SubjectId subject, std::size_t set) = 0;
    /// Device time of one run. Outside the timed region: the refill, and what makes earlier launches' leftovers on the chip useless.
    [[nodiscard]] virtual Result<TimedSample> time(const TimedRun &run) = 0;

    // Counters and samples load the vendor's profiler into the process, which slows launches down: never in a worker that times.
    // ErrorCode::Unavailable says what is missing or not allowed.

    /// Hardware counters, one metric a kernel of the plan; see counters/metricsets.h for the sets. Runs over the sets in turn.
    [[nodiscard]] virtual Result<std::vector<Metric>> counters(SubjectId, const std::vector<std::string> &)
    {
        return fail(ErrorCode::Unavailable, "Cannot read hardware counters: OpenCL offers none.");
    }
    /// To be called before the module is loaded that sample() is about.
    [[nodiscard]] virtual Status prepareSampling()
    {
        return fail(ErrorCode::Unavailable, "Cannot sample the program counter: OpenCL offers no way.");
    }
    /// Samples the program counter during runs of a plan from the module with these bytes.
    [[nodiscard]] virtual Result<SampledCode> sample(SubjectId, std::span<const std::byte>)
    {
        return fail(ErrorCode::Unavailable, "Cannot sample the program counter: OpenCL offers no way.");
    }
    /// Repeats the sample for about so long and reads the device's energy counter around it.
    [[nodiscard]] virtual Result<EnergyReading> energy(const TimedRun &, double)
    {
        return fail(ErrorCode::Unavailable, "This device has no energy counter.");
    }
};

/// nullptr with ErrorCode::Unavailable and what is missing and how to get it.
[[nodiscard]] Result<std::unique_ptr<Backend>> openOpenClBackend();
[[nodiscard]] Result<std::unique_ptr<Backend>> openCudaBackend();

/// NVRTC, in the compiler process: needs no device. target: "sm_90a". headers: of a language whose compiler wrote the source; what is not theirs is
/// the toolkit's. Never throws; loads libnvrtc at run time.
[[nodiscard]] Result<CompileOutput> compileCuda(const std::string &source, const std::string &name,
                                                const std::map<std::string, std::int64_t> &tunables,
                                                const std::string &target, const HeaderTexts &headers = {});

} // namespace klineage::gate
