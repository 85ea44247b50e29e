// SPDX-License-Identifier: GPL-3.0-or-later
//
// The tests that need a CUDA device, in one program that needs nothing but the gate: klineage-gputest [GROUP…] prints a line a check and
// the count. A machine without a device skips them and says what is missing.
#include "tests/gpu/report.h"

#include "core/files/atomicfile.h"
#include "core/gate/selftest/runcorpus.h"
#include "core/gate/session/sandbox.h"
#include "core/gate/timing/copyplaces.h"
#include "core/gate/timing/timedbuffers.h"
#include "core/pool/gateclient.h"
#include "core/trial/analysis/ceilings.h"
#include "core/workspace/workspace.h"
#include "tests/paths.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>

namespace {

using namespace klineage;
using gputest::Report;
namespace fs = std::filesystem;

constexpr std::size_t mostBytes = std::size_t{4} << 20;

struct Setting {
    fs::path source; ///< the repository
    gate::SupervisorOptions options;
    std::string missing; ///< why there is no device; empty: there is one
};

/// A SiLU kernel that ends with these statements, on the workload silu of tests/bench.
std::string silu(const std::string &end)
{
    return "/*klineage\nsurface = \"cuda\"\n\n[[launch]]\nkernel = \"silu\"\ngrid = [\"ceil_div(R * C, 256)\"]\n"
           "block = [256]\nargs = [\"x\", \"y\", \"int R\", \"int C\"]\n*/\n"
           "extern \"C\" __global__ void silu(const float *x, float *y, int rows, int columns)\n{\n"
           "    int n = rows * columns;\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
           "    if (i >= n)\n        return;\n    float v = x[i] / (1.0f + expf(-x[i]));\n    "
           + end + "\n}\n";
}

Result<gate::GateJob> jobOf(const fs::path &workloadDirectory, const std::string &text,
                            const std::string &name)
{
    auto workload = workload::readWorkload(workloadDirectory);
    if (!workload)
        return tl::unexpected(workload.error());
    gate::GateJob job;
    job.workload = std::move(*workload);
    job.request.candidateText = text;
    job.request.candidateName = name;
    job.request.profileSeconds = 1;
    return job;
}

void verdicts(const Setting &setting, Report &report)
{
    struct Row {
        const char *name;
        std::string text;
        std::vector<gate::VerdictStatus> expected;
        double deadlineSeconds = 120;
    };
    using enum gate::VerdictStatus;
    const std::vector<Row> rows = {
        {"right", silu("y[i] = v;"), {Correct}},
        {"no store", silu(";"), {Wrong}},
        {"wrong value", silu("y[i] = v + 1.0f;"), {Wrong}},
        {"not the last element", silu("if (i < n - 1) y[i] = v;"), {Wrong}},
        {"one behind the output", silu("y[i] = v; if (i == n - 1) y[n] = v;"), {Unsafe}},
        {"behind its red zone", silu("y[i] = v; if (i == n - 1) y[n + 2048] = 0;"), {Unsafe, Wrong, Crash}},
        {"its input", silu("y[i] = v; const_cast<float *>(x)[i] = 0;"), {Unsafe}},
        {"far away", silu("y[i] = v; y[(size_t)1 << 40] = v;"), {Crash, Unsafe}},
        {"does not compile", silu("y[i] = undeclared;"), {CompileError}},
        {"never ends", silu("while (*(const volatile float *)x < 1e30f) { } y[i] = v;"), {Timeout}, 12},
        {"right, after all that", silu("y[i] = v;"), {Correct}},
    };
    gate::Supervisor supervisor(setting.options); // one for all: what one did must not reach the next
    for (const Row &row : rows) {
        const std::string check = std::string("verdict of ") + row.name;
        auto job = jobOf(setting.source / "tests/bench/gate/workloads/silu", row.text, "silu.cu");
        if (!job) {
            report.failed(check, job.error().message);
            continue;
        }
        job->request.deadlineSeconds = row.deadlineSeconds;
        const auto trial = supervisor.gate(*job);
        if (!trial)
            report.failed(check, trial.error().message);
        else
            report.require(
                std::count(row.expected.begin(), row.expected.end(), trial->verdict.status) > 0, check,
                std::string(gate::toString(trial->verdict.status)) + ": " + trial->verdict.message);
    }
}

void corpus(const Setting &setting, Report &report)
{
    const auto corpus = gate::readCorpus(setting.source / "tests/gate/corpus");
    if (!corpus)
        return report.failed("corpus", corpus.error().message);
    gate::CorpusOptions options;
    options.surface = kernel::Surface::Cuda;
    options.supervisor = setting.options;
    const auto summary = gate::runCorpus(*corpus, options, {}, [&](const gate::CorpusOutcome &outcome) {
        const std::string check = "corpus " + outcome.entry->file;
        if (outcome.skipped)
            report.skipped(check, outcome.message);
        else
            report.require(outcome.mismatch.empty(), check,
                           std::string(gate::toString(outcome.verdict.status)) + ": " + outcome.message);
    });
    if (!summary)
        report.failed("corpus", summary.error().message);
}

struct LineageEnd {
    const lineage::Lineage *lineage;
    gate::GateJob job;
};

/// The last state of each shipped CUDA lineage, with its workload.
std::vector<LineageEnd> lineageEnds(const Workspace &workspace, Report &report)
{
    std::vector<LineageEnd> ends;
    for (const lineage::Lineage &lineage : workspace.lineages) {
        if (lineage.surface != kernel::Surface::Cuda || lineage.states.empty())
            continue;
        const std::string check = "end of " + lineage.key();
        const fs::path file = lineage.directory / lineage.states.back().file;
        const auto text = files::readFile(file, mostBytes);
        auto job = jobOf(workspace.root / "workloads" / lineage.workload, text.value_or(""),
                         file.filename().string());
        if (!text || !job)
            report.failed(check, (text ? job.error() : text.error()).message);
        else
            ends.push_back({&lineage, std::move(*job)});
    }
    return ends;
}

void lineages(const Setting &setting, Report &report)
{
    const auto workspace = openWorkspace(setting.source);
    if (!workspace)
        return report.failed("lineages", workspace.error().message);
    const auto ends = lineageEnds(*workspace, report);
    report.require(!ends.empty(), "CUDA lineages are shipped", std::to_string(ends.size()));
    gate::Supervisor supervisor(setting.options);
    for (LineageEnd end : ends) {
        const std::string check = "end of " + end.lineage->key();
        end.job.request.profileSeconds = 3;
        const auto trial = supervisor.gate(end.job);
        if (!trial)
            report.failed(check, trial.error().message);
        else if (trial->environment.platform != end.lineage->platform)
            report.skipped(check, "it is for " + end.lineage->platform + ", and this device is "
                                      + trial->environment.platform);
        else
            report.require(trial->verdict.status == gate::VerdictStatus::Correct, check,
                           std::string(gate::toString(trial->verdict.status)) + ": "
                               + trial->verdict.message);
    }
}

std::string noteOf(const gate::Trial &trial, const std::string &name)
{
    for (const gate::Evidence &evidence : trial.verdict.evidence) {
        if (evidence.name == name)
            return evidence.value;
    }
    return {};
}

void counters(const Setting &setting, Report &report)
{
    auto job = jobOf(setting.source / "tests/bench/gate/workloads/silu", silu("y[i] = v;"), "silu.cu");
    if (!job)
        return report.failed("counters", job.error().message);
    job->request.counters = true;
    gate::Supervisor supervisor(setting.options);
    const auto trial = supervisor.gate(*job);
    if (!trial || trial->verdict.status != gate::VerdictStatus::Correct)
        return report.failed("counters", trial ? trial->verdict.message : trial.error().message);
    const auto value = [&](const std::string &name) {
        const auto found = std::find_if(trial->metrics.begin(), trial->metrics.end(),
                                        [&](const gate::Metric &metric) { return metric.name == name; });
        return found == trial->metrics.end() ? 0.0 : found->value;
    };
    if (const std::string why = noteOf(*trial, "counters"); !why.empty()) {
        report.skipped("hardware counters", why);
    } else {
        // What the kernel moves is known: 4096 × 1536 floats are read once and written once.
        const double bytes = 4096.0 * 1536 * 4;
        for (const char *name : {"dram_read_bytes", "dram_write_bytes"}) {
            const double got = value(name);
            report.require(got > 0.8 * bytes && got < 1.5 * bytes, std::string("counter ") + name,
                           std::to_string(got / bytes) + " of what the kernel moves");
        }
    }
    if (const std::string why = noteOf(*trial, "hotspots"); !why.empty())
        report.skipped("program counter samples", why);
    else
        report.require(!trial->hotspots.empty() && trial->hotspots.front().samples > 0,
                       "program counter samples", std::to_string(trial->hotspots.size()) + " lines");
}

/// A tiled product on the workload gemm, with what the last thread of the timed case does besides its own store.
std::string product(const std::string &ofTheLast, const std::string &value = "sum")
{
    return "/*klineage\nsurface = \"cuda\"\n\n[[launch]]\nkernel = \"mm\"\n"
           "grid = [\"ceil_div(N, 16)\", \"ceil_div(M, 16)\"]\nblock = [16, 16]\n"
           "args = [\"x\", \"weight\", \"y\", \"int M\", \"int N\", \"int K\"]\n*/\n#include <cuda_bf16.h>\n"
           "extern \"C\" __global__ void mm(const __nv_bfloat16 *x, const __nv_bfloat16 *w, __nv_bfloat16 *y, int M, "
           "int N, int K)\n{\n    __shared__ float a[16][17], b[16][17];\n"
           "    int tx = threadIdx.x, ty = threadIdx.y, other = blockIdx.x * 16 + ty;\n"
           "    int row = blockIdx.y * 16 + ty, col = blockIdx.x * 16 + tx;\n    float sum = 0;\n"
           "    for (int k = 0; k < K; k += 16) {\n"
           "        bool in = k + tx < K;\n"
           "        a[ty][tx] = in && row < M ? __bfloat162float(x[(size_t)row * K + k + tx]) : 0.0f;\n"
           "        b[ty][tx] = in && other < N ? __bfloat162float(w[(size_t)other * K + k + tx]) : 0.0f;\n"
           "        __syncthreads();\n        for (int i = 0; i < 16; ++i)\n"
           "            sum += a[ty][i] * b[tx][i];\n        __syncthreads();\n    }\n"
           "    if (row >= M || col >= N)\n        return;\n"
           "    bool last = M == 4096 && row == M - 1 && col == N - 1;\n    y[(size_t)row * N + col] = "
           + value + ";\n    if (last) {\n        " + ofTheLast + "\n    }\n}\n";
}

/// What is found in buffers that are looked at where they lie: one element, or a byte beside it, of a hundred megabytes.
void judge(const Setting &setting, Report &report)
{
    struct Row {
        const char *name;
        std::string text;
        gate::VerdictStatus expected;
        const char *says;
    };
    using enum gate::VerdictStatus;
    const Row rows[] = {
        {"right", product(""), Correct, "orrect"},
        {"one element wrong", product("", "last ? sum + 64.0f : sum"), Wrong, "y[4095, 4095]"},
        {"one behind the output", product("y[(size_t)M * N] = sum;"), Unsafe, "outside y"},
        {"one before the output", product("y[-1] = sum;"), Unsafe, "outside y"},
        {"its input", product("const_cast<__nv_bfloat16 *>(w)[70007] = 100.0f;"), Unsafe, "weight"},
        {"right, after all that", product(""), Correct, "orrect"},
    };
    gate::Supervisor supervisor(setting.options);
    for (const Row &row : rows) {
        const std::string check = std::string("large buffers: ") + row.name;
        auto job = jobOf(setting.source / "workloads/gemm", row.text, "mm.cu");
        if (!job) {
            report.failed(check, job.error().message);
            continue;
        }
        job->request.withReference = false;
        job->request.minRounds = 5;
        const auto trial = supervisor.gate(*job);
        if (!trial) {
            report.failed(check, trial.error().message);
            continue;
        }
        const auto &verdict = trial->verdict;
        report.require(verdict.status == row.expected && verdict.message.find(row.says) != std::string::npos,
                       check, std::string(gate::toString(verdict.status)) + ": " + verdict.message);
        if (row.expected == Correct)
            report.require(!noteOf(*trial, "comparison").empty(), "who compares is said",
                           noteOf(*trial, "comparison"));
    }
}

void roofline(const Setting &setting, Report &report)
{
    gate::Supervisor supervisor(setting.options);
    const auto ceilings = supervisor.ceilings(kernel::DeviceKind::Cuda, true);
    if (!ceilings)
        return report.failed("roofline", ceilings.error().message);
    report.require(!ceilings->bandwidths.empty(), "bandwidths are measured",
                   std::to_string(ceilings->bandwidths.size()) + " footprints");
    for (const gate::BandwidthCeiling &bandwidth : ceilings->bandwidths) {
        const std::string check = "bandwidth over "
                                  + std::to_string(static_cast<long long>(bandwidth.footprintBytes / 1024))
                                  + " KiB";
        report.require(bandwidth.copy > 0 && bandwidth.read > 0 && bandwidth.write > 0, check,
                       std::to_string(bandwidth.best() / 1e9) + " GB/s");
    }
    for (const char *name : {"fp32", "fp64"}) {
        const auto *rate = ceilings->rate(name);
        report.require(rate && rate->perSecond > 0 && rate->limit >= rate->perSecond,
                       std::string("rate of ") + name,
                       rate ? std::to_string(rate->perSecond / 1e12) + " TFLOP/s" : "not measured");
    }
}

void device(const Setting &setting, Report &report)
{
    gate::Supervisor supervisor(setting.options);
    for (const gate::DeviceInfo &info : supervisor.devices()) {
        if (info.kind == kernel::DeviceKind::Cuda)
            report.require(info.available && !info.name.empty(), "a kernel of the gate's own runs",
                           info.name + " " + info.detail);
    }
}

/// Whether no two of the copies overlap, and how many distances there are from one to the next.
std::pair<bool, std::size_t> distancesOf(const gate::GuardedCopies &copies)
{
    std::set<std::size_t> distances;
    bool apart = true;
    for (std::size_t i = 1; i < copies.places.size(); ++i) {
        const bool ascends = copies.places[i] >= copies.places[i - 1] + copies.placeBytes;
        apart = apart && ascends;
        distances.insert(copies.places[i] - copies.places[i - 1]);
    }
    return {apart, distances.size()};
}

/// Where the copies of tensors lie that timed runs rotate over, on the device itself: each at a place of its own, and each holds what it was given.
void places(const Setting &setting, Report &report)
{
    constexpr std::size_t sets = 24;
    const auto workload = workload::readWorkload(setting.source / "tests/bench/gate/workloads/silu");
    if (!workload)
        return report.failed("places", workload.error().message);
    std::vector<gate::CaseInstancePtr> contents;
    for (const std::uint64_t seed : {1u, 2u}) {
        auto made = gate::makeInstance(*workload, workload->cases.front(), seed);
        if (!made)
            return report.failed("places", made.error().message);
        contents.push_back(std::move(*made));
    }
    auto command = setting.options.workerCommand;
    command.insert(command.end(), {"--backend", "cuda"});
    const auto worker = gate::WorkerSession::start(command, kernel::DeviceKind::Cuda, 60, {});
    if (!worker)
        return report.failed("places", worker.error().error.message);
    (*worker)->beginTrial({}, process::Deadline::in(120));
    gate::TimedBuffers buffers(**worker, *workload, contents);
    if (!buffers.allocate(sets) || !buffers.redraw(1))
        return report.failed("places", "cannot allocate " + std::to_string(sets) + " sets");
    const auto guards = buffers.guards();
    if (!guards || !(*worker)->setGuards(*guards))
        return report.failed("places", "cannot guard the copies");
    for (const gate::GuardedCopies &copies : guards->copies) {
        const auto [apart, distances] = distancesOf(copies);
        report.require(apart && copies.places.size() == sets, "copies do not overlap",
                       std::to_string(copies.places.size()) + " of " + std::to_string(copies.placeBytes)
                           + " bytes");
        report.require(distances > sets / 2, "copies lie at distances of their own",
                       std::to_string(distances) + " distances");
    }
    report.require(guards->copies.size() > 1 && guards->copies[0].places != guards->copies[1].places,
                   "tensors lie unlike each other", std::to_string(guards->copies.size()) + " tensors");
    // All are written before one is read: of two that overlapped one would be spoilt.
    for (std::size_t set = 0; set < sets; ++set) {
        if (!(*worker)->copy(buffers.knownRanges(set, set % 2)))
            return report.failed("places", "cannot write set " + std::to_string(set));
    }
    std::size_t whole = 0;
    for (std::size_t set = 0; set < sets; ++set) {
        const auto found = buffers.inspectKnown(set, {}, set % 2, true);
        // Nobody has computed the output; zones and inputs are looked at before it.
        whole += found && *found && (*found)->kind == gate::Finding::Kind::Mismatch ? 1 : 0;
    }
    report.require(whole == sets, "each copy holds what it was given",
                   std::to_string(whole) + " of " + std::to_string(sets));
    const gate::GuardedCopies &first = guards->copies.front();
    const std::size_t behind = first.places.front() + gate::placeBytes(first.placeBytes);
    report.require(!(*worker)->download(first.buffer, 4096, behind), "nothing lies between copies",
                   "reading there ends the worker");
}

struct Group {
    const char *name;
    void (*run)(const Setting &, Report &);
};
constexpr Group groups[] = {{"device", device},     {"places", places},     {"verdicts", verdicts},
                            {"judge", judge},       {"lineages", lineages}, {"counters", counters},
                            {"roofline", roofline}, {"corpus", corpus}};

int usage()
{
    std::fprintf(stderr, "Usage: klineage-gputest [--source REPOSITORY] [GROUP…]\n\nGroups:");
    for (const Group &group : groups)
        std::fprintf(stderr, " %s", group.name);
    std::fprintf(stderr, " (default: all). Exit status: 0 passed, 1 failed, 77 nothing could be run.\n");
    return 2;
}

Result<Setting> prepare(const fs::path &source)
{
    const auto program = gate::findGateProgram();
    if (!program)
        return tl::unexpected(program.error());
    Setting setting;
    setting.source = source;
    setting.options.workerCommand = {program->string(), "worker"};
    setting.options.compilerCommand = {program->string(), "compile"};
    setting.options.cacheDirectory = gate::cacheDirectory();
    setting.missing = "the gate has no CUDA surface in this build";
    gate::Supervisor supervisor(setting.options);
    for (const gate::DeviceInfo &info : supervisor.devices()) {
        if (info.kind == kernel::DeviceKind::Cuda)
            setting.missing = info.available ? "" : info.detail;
    }
    return setting;
}

} // namespace

int main(int argc, char **argv)
{
    fs::path source = klineage::test::sourcePath();
    std::vector<const Group *> chosen;
    for (int i = 1; i < argc; ++i) {
        const auto *group = std::find_if(std::begin(groups), std::end(groups),
                                         [&](const Group &g) { return std::strcmp(g.name, argv[i]) == 0; });
        if (std::strcmp(argv[i], "--source") == 0 && i + 1 < argc)
            source = argv[++i];
        else if (group != std::end(groups))
            chosen.push_back(group);
        else
            return usage();
    }
    if (chosen.empty()) {
        for (const Group &group : groups)
            chosen.push_back(&group);
    }
    const auto setting = prepare(source);
    Report report;
    if (!setting) {
        report.failed("start", setting.error().message);
        return report.end();
    }
    for (const Group *group : chosen) {
        if (setting->missing.empty())
            group->run(*setting, report);
        else
            report.skipped(group->name, setting->missing);
    }
    return report.end();
}
