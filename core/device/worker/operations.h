// SPDX-License-Identifier: GPL-3.0-or-later
//
// What a worker and the compiler process can be asked for: each operation once, with what it carries, what comes back, and the keys
// under which both travel. The worker binds an operation to what does it, a session asks it; neither writes JSON of its own.
#pragma once

#include "core/device/compilers.h"
#include "core/device/worker/codec.h"

namespace klineage::gate::protocol {

/// Where an operation's bulk bytes lie in the shared memory.
struct Region {
    std::size_t offset = 0;
    std::size_t bytes = 0;
    static constexpr auto fields =
        std::tuple{Field("offset", &Region::offset), Field("bytes", &Region::bytes)};
};

/// Nothing comes back but that it was done.
struct Done {
    static constexpr std::tuple<> fields{};
};

/// What a worker says of its device before it is asked anything.
struct WorkerHello {
    kernel::Bindings facts;
    Environment environment;
    std::size_t cacheBytes = 0;
    static constexpr auto fields =
        std::tuple{Field("facts", &WorkerHello::facts), Field("environment", &WorkerHello::environment),
                   Field("cache_bytes", &WorkerHello::cacheBytes)};
};

struct NewBuffer {
    BufferId buffer = 0;
    static constexpr auto fields = std::tuple{Field("buffer", &NewBuffer::buffer)};
};

struct NewSubject {
    SubjectId subject = 0;
    static constexpr auto fields = std::tuple{Field("subject", &NewSubject::subject)};
};

/// A module that does not load is a value: it has no id and says why.
struct Load {
    static constexpr const char *name = "load";
    struct Reply {
        std::optional<ModuleId> module;
        CompileOutput output;
        Error error;
        static constexpr auto fields = std::tuple{
            Field("module", &Reply::module), Field("compile", &Reply::output), Field("why", &Reply::error)};
    };
    Region binary;
    std::string source;
    std::map<std::string, std::int64_t> tunables;
    static constexpr auto fields = std::tuple{Field("binary", &Load::binary), Field("source", &Load::source),
                                              Field("tunables", &Load::tunables)};
};

struct Unload {
    static constexpr const char *name = "unload";
    using Reply = Done;
    ModuleId module = 0;
    static constexpr auto fields = std::tuple{Field("module", &Unload::module)};
};

struct ReadGlobal {
    static constexpr const char *name = "read_global";
    using Reply = Done;
    ModuleId module = 0;
    std::string variable;
    Region to;
    static constexpr auto fields =
        std::tuple{Field("module", &ReadGlobal::module), Field("variable", &ReadGlobal::variable),
                   Field("to", &ReadGlobal::to)};
};

struct Allocate {
    static constexpr const char *name = "allocate";
    using Reply = NewBuffer;
    std::size_t bytes = 0;
    bool hidden = false;
    static constexpr auto fields =
        std::tuple{Field("bytes", &Allocate::bytes), Field("hidden", &Allocate::hidden)};
};

/// A buffer with memory at these places alone.
struct Scatter {
    static constexpr const char *name = "scatter";
    using Reply = NewBuffer;
    std::size_t rangeBytes = 0;
    std::size_t placeBytes = 0;
    std::vector<std::size_t> places;
    static constexpr auto fields =
        std::tuple{Field("range", &Scatter::rangeBytes), Field("place", &Scatter::placeBytes),
                   Field("places", &Scatter::places)};
};

struct Release {
    static constexpr const char *name = "release";
    using Reply = Done;
    BufferId buffer = 0;
    static constexpr auto fields = std::tuple{Field("buffer", &Release::buffer)};
};

struct Upload {
    static constexpr const char *name = "upload";
    using Reply = Done;
    BufferId buffer = 0;
    std::size_t offset = 0; ///< in the buffer
    Region from;
    static constexpr auto fields = std::tuple{Field("buffer", &Upload::buffer),
                                              Field("offset", &Upload::offset), Field("from", &Upload::from)};
};

struct Download {
    static constexpr const char *name = "download";
    using Reply = Done;
    BufferId buffer = 0;
    std::size_t offset = 0; ///< in the buffer
    Region to;
    static constexpr auto fields = std::tuple{Field("buffer", &Download::buffer),
                                              Field("offset", &Download::offset), Field("to", &Download::to)};
};

/// Lets another process open the buffer.
struct Share {
    static constexpr const char *name = "share";
    struct Reply {
        std::string handle;
        static constexpr auto fields = std::tuple{Field("handle", &Reply::handle)};
    };
    BufferId buffer = 0;
    static constexpr auto fields = std::tuple{Field("buffer", &Share::buffer)};
};

/// Opens what another process shares.
struct Adopt {
    static constexpr const char *name = "adopt";
    using Reply = NewBuffer;
    std::string handle;
    std::size_t bytes = 0;
    static constexpr auto fields = std::tuple{Field("handle", &Adopt::handle), Field("bytes", &Adopt::bytes)};
};

struct Copy {
    static constexpr const char *name = "copy";
    using Reply = Done;
    std::vector<CopyRange> ranges;
    static constexpr auto fields = std::tuple{Field("ranges", &Copy::ranges)};
};

struct InstallHelpers {
    static constexpr const char *name = "install_helpers";
    using Reply = Done;
    Region binary;
    static constexpr auto fields = std::tuple{Field("binary", &InstallHelpers::binary)};
};

struct AddPlan {
    static constexpr const char *name = "add_plan";
    using Reply = NewSubject;
    ModuleId module = 0;
    kernel::ResolvedPlan plan;
    std::vector<BufferSet> sets;
    static constexpr auto fields = std::tuple{Field("module", &AddPlan::module),
                                              Field("plan", &AddPlan::plan), Field("sets", &AddPlan::sets)};
};

/// Compiles what the plan's launches need, and runs nothing.
struct Prime {
    static constexpr const char *name = "prime";
    using Reply = Done;
    ModuleId module = 0;
    kernel::ResolvedPlan plan;
    static constexpr auto fields = std::tuple{Field("module", &Prime::module), Field("plan", &Prime::plan)};
};

/// From here on the worker's process makes no threads, no processes and no code.
struct Seal {
    static constexpr const char *name = "seal";
    struct Reply {
        bool sealed = false;
        static constexpr auto fields = std::tuple{Field("sealed", &Reply::sealed)};
    };
    bool times = false;
    static constexpr auto fields = std::tuple{Field("times", &Seal::times)};
};

struct AddReference {
    static constexpr const char *name = "add_reference";
    using Reply = NewSubject;
    ReferenceCall call;
    std::vector<BufferSet> sets;
    static constexpr auto fields =
        std::tuple{Field("call", &AddReference::call), Field("sets", &AddReference::sets)};
};

struct RemoveSubject {
    static constexpr const char *name = "remove_subject";
    using Reply = Done;
    SubjectId subject = 0;
    static constexpr auto fields = std::tuple{Field("subject", &RemoveSubject::subject)};
};

struct Rebind {
    static constexpr const char *name = "rebind";
    using Reply = Done;
    SubjectId subject = 0;
    std::vector<BufferSet> sets;
    static constexpr auto fields =
        std::tuple{Field("subject", &Rebind::subject), Field("sets", &Rebind::sets)};
};

struct SetFills {
    static constexpr const char *name = "set_fills";
    using Reply = Done;
    SubjectId subject = 0;
    FillSets fills;
    static constexpr auto fields =
        std::tuple{Field("subject", &SetFills::subject), Field("fills", &SetFills::fills)};
};

struct SetContents {
    static constexpr const char *name = "set_contents";
    using Reply = Done;
    std::vector<std::vector<CopyRange>> sets;
    static constexpr auto fields = std::tuple{Field("sets", &SetContents::sets)};
};

struct SetGuards {
    static constexpr const char *name = "set_guards";
    using Reply = Done;
    Guards guards;
    static constexpr auto fields = std::tuple{Field("guards", &SetGuards::guards)};
};

/// What of its outputs is looked at after each timed sample.
struct SetOutputs {
    static constexpr const char *name = "set_outputs";
    using Reply = Done;
    SubjectId subject = 0;
    OutputSets outputs;
    static constexpr auto fields =
        std::tuple{Field("subject", &SetOutputs::subject), Field("outputs", &SetOutputs::outputs)};
};

struct AskSubject {
    static constexpr const char *name = "subject_info";
    struct Reply {
        std::string version; ///< of a vendor's library; empty for plans
        std::vector<Metric> metrics;
        static constexpr auto fields =
            std::tuple{Field("version", &Reply::version), Field("metrics", &Reply::metrics)};
    };
    SubjectId subject = 0;
    static constexpr auto fields = std::tuple{Field("subject", &AskSubject::subject)};
};

struct Run {
    static constexpr const char *name = "run";
    using Reply = Done;
    SubjectId subject = 0;
    std::size_t set = 0;
    static constexpr auto fields = std::tuple{Field("subject", &Run::subject), Field("set", &Run::set)};
};

/// Measured in this order; one sample each. The fingerprints of their outputs come one after the other in the shared memory.
struct Time {
    static constexpr const char *name = "time";
    struct Reply {
        std::vector<TimedSample> samples;
        static constexpr auto fields = std::tuple{Field("samples", &Reply::samples)};
    };
    std::vector<TimedRun> sequence;
    Region prints;
    static constexpr auto fields =
        std::tuple{Field("sequence", &Time::sequence), Field("prints", &Time::prints)};
};

struct ReadEnergy {
    static constexpr const char *name = "energy";
    struct Reply {
        EnergyReading energy;
        static constexpr auto fields = std::tuple{Field("energy", &Reply::energy)};
    };
    TimedRun run;
    double seconds = 0;
    static constexpr auto fields =
        std::tuple{Field("run", &ReadEnergy::run), Field("seconds", &ReadEnergy::seconds)};
};

struct ReadCounters {
    static constexpr const char *name = "counters";
    struct Reply {
        std::vector<Metric> metrics;
        static constexpr auto fields = std::tuple{Field("metrics", &Reply::metrics)};
    };
    SubjectId subject = 0;
    std::vector<std::string> sets;
    static constexpr auto fields =
        std::tuple{Field("subject", &ReadCounters::subject), Field("sets", &ReadCounters::sets)};
};

struct PrepareSampling : Done {
    static constexpr const char *name = "prepare_sampling";
    using Reply = Done;
};

struct Sample {
    static constexpr const char *name = "sample";
    struct Reply {
        std::vector<Metric> metrics;
        std::vector<ListedInstruction> instructions;
        static constexpr auto fields =
            std::tuple{Field("metrics", &Reply::metrics), Field("instructions", &Reply::instructions)};
    };
    SubjectId subject = 0;
    Region binary; ///< of the module that the subject is from
    static constexpr auto fields =
        std::tuple{Field("subject", &Sample::subject), Field("binary", &Sample::binary)};
};

struct AskEnvironment : Done {
    static constexpr const char *name = "environment";
    struct Reply {
        Environment environment;
        static constexpr auto fields = std::tuple{Field("environment", &Reply::environment)};
    };
};

/// Of the compiler process. The binary goes to the beginning of the shared memory, which has so much room.
struct Compile : CompileRequest {
    static constexpr const char *name = "compile";
    struct Reply {
        CompileOutput output; ///< without the binary
        std::size_t bytes = 0;
        static constexpr auto fields =
            std::tuple{Field("compile", &Reply::output), Field("bytes", &Reply::bytes)};
    };
    std::size_t room = 0;
    static constexpr auto fields = std::tuple{Field("language", &CompileRequest::language),
                                              Field("source", &CompileRequest::source),
                                              Field("name", &CompileRequest::name),
                                              Field("tunables", &CompileRequest::tunables),
                                              Field("target", &CompileRequest::target),
                                              Field("headers", &CompileRequest::headers),
                                              Field("room", &Compile::room)};
};

} // namespace klineage::gate::protocol
