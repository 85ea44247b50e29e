// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/files/atomicfile.h"
#include "core/files/sha256.h"
#include "core/run/context.h"
#include "tests/paths.h"

#include <algorithm>
#include <functional>
#include <optional>

#include <QTemporaryDir>

/// A toy world for the procedures that learn: a kernel has the optimizations whose lines it holds ("int opt_a = 1;"), and each makes it
/// faster by its factor. The author is a function of the request, the gate one of candidate and parent: equal runs have equal records.
namespace klineage::tests {

namespace fs = std::filesystem;

/// Where temporary folders go: in memory, where there is such a file system, because these tests flush thousands of small files.
inline QString quickFolder()
{
    std::error_code ignored;
    return fs::is_directory("/dev/shm", ignored) ? QStringLiteral("/dev/shm/klineage-XXXXXX")
                                                 : QStringLiteral("klineage-XXXXXX");
}

inline std::string toyKernel(const std::vector<std::string> &lines, const std::string &comment = {})
{
    std::string text =
        "/*klineage\nsurface = \"opencl\"\n\n[[launch]]\nkernel = \"toy\"\ngrid = [\"ceil_div(R, 16)\"]\n"
        "block = [\"16\"]\nargs = [\"x\", \"y\", \"int R\", \"int C\"]\n*/\n";
    text += comment;
    text += "__kernel void toy(__global const float *x, __global float *y, int R, int C)\n{\n";
    for (const std::string &line : lines)
        text += "    int " + line + " = 1;\n";
    return text + "}\n";
}

/// The optimizations of a text, in the order of its lines.
inline std::vector<std::string> toyLines(const std::string &text)
{
    std::vector<std::string> lines;
    const std::string begin = "    int ";
    for (std::size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at + 1)) {
        const std::size_t name = at + begin.size();
        lines.push_back(text.substr(name, text.find(' ', name) - name));
    }
    return lines;
}

/// The first candidate file within a prompt.
inline std::string candidateOf(const std::string &prompt)
{
    const std::size_t begin = prompt.find("/*klineage\nsurface");
    return begin == std::string::npos ? std::string()
                                      : prompt.substr(begin, prompt.find("```", begin) - begin);
}

inline std::string block(const std::string &text, const std::string &language = "c")
{
    return "Here it is.\n\n```" + language + '\n' + text + "```\n";
}

/// A free author whose replies are a function of the request.
class BrainProvider final : public llm::Provider
{
public:
    using Brain = std::function<std::string(const llm::Request &)>;

    explicit BrainProvider(Brain brain)
        : m_brain(std::move(brain))
    {}

    std::vector<llm::Request> asked;
    std::function<void()> beforeReply;
    llm::StopReason stop = llm::StopReason::End;

    std::string name() const override { return "brain"; }
    bool isPaid() const override { return false; }
    tl::expected<llm::Reply, llm::ProviderFailure> ask(const llm::Request &request, std::stop_token token,
                                                       const llm::TextCallback &) override
    {
        if (beforeReply)
            beforeReply();
        if (token.stop_requested())
            return tl::unexpected(
                llm::ProviderFailure{{ErrorCode::Cancelled, "The request was stopped.", {}}, {}, false});
        asked.push_back(request);
        llm::Reply reply;
        reply.text = m_brain(request);
        reply.stop = stop;
        reply.model = "brain-1";
        return reply;
    }

private:
    Brain m_brain;
};

/// A gate that knows the toy: "int wrong = 1;" is wrong, "int slow_2 = 1;" and the like multiply the latency by 1.02, and each
/// optimization named opt_… makes it twice as fast. A trial's id is a function of candidate and parent.
class ToyGate
{
public:
    std::function<void()> beforeTrial;
    int calls = 0;
    int unsteadyMatches =
        0; ///< so many comparisons of equally fast kernels have an interval that says nothing

    static double latency(const std::string &text)
    {
        double ns = 64000;
        for (const std::string &line : toyLines(text)) {
            if (line.starts_with("opt_"))
                ns /= 2;
            else if (line.starts_with("slow_"))
                ns *= 1 + std::stod(line.substr(5)) / 100;
            else if (line.starts_with("fast_"))
                ns /= 1 + std::stod(line.substr(5)) / 100;
        }
        return ns;
    }

    run::GateFunction function()
    {
        return [this](const gate::GateRequest &request, std::stop_token stop,
                      const gate::ProgressCallback &) { return judge(request, stop); };
    }

private:
    Result<gate::Trial> judge(const gate::GateRequest &request, const std::stop_token &stop)
    {
        if (beforeTrial)
            beforeTrial();
        if (stop.stop_requested())
            return klineage::fail(ErrorCode::Cancelled, "The trial was stopped.");
        ++calls;
        gate::Trial trial;
        trial.candidate = files::sha256Hex(request.candidateText);
        if (!request.parentText.empty())
            trial.parent = files::sha256Hex(request.parentText);
        trial.id = files::sha256Hex(trial.candidate + '|' + trial.parent).substr(0, 16);
        trial.time = "2026-01-02T03:04:05Z";
        trial.workload = request.workloadDirectory.filename().string();
        trial.environment = {"pocl", "toy", {}};
        trial.gateVersion = "0";
        trial.verdict.reason = "ok";
        const std::vector<std::string> lines = toyLines(request.candidateText);
        const auto has = [&](const char *line) {
            return std::find(lines.begin(), lines.end(), line) != lines.end();
        };
        if (has("unavailable")) {
            trial.verdict.message = "There is no device.";
            return trial;
        }
        if (has("wrong")) {
            trial.verdict.status = gate::VerdictStatus::Wrong;
            trial.verdict.stage = gate::Stage::Correctness;
            trial.verdict.reason = "mismatch";
            trial.verdict.message = "Element y[0, 1] is 2, expected 1.";
            return trial;
        }
        trial.verdict.status = gate::VerdictStatus::Correct;
        trial.verdict.stage = gate::Stage::Profile;
        time(trial, request);
        return trial;
    }

    static gate::Interval around(double value) { return {value, value * 0.99, value * 1.01}; }

    void time(gate::Trial &trial, const gate::GateRequest &request)
    {
        const double ns = latency(request.candidateText);
        trial.latencyNs = around(ns);
        trial.metrics.push_back({"instructions", ns / 10, "", ""});
        if (!request.parentText.empty()) {
            const double parentNs = latency(request.parentText);
            const gate::Change change = parentNs > ns * 1.005   ? gate::Change::Gain
                                        : ns > parentNs * 1.005 ? gate::Change::Loss
                                                                : gate::Change::NoGain;
            gate::Interval speedup = around(parentNs / ns);
            if (parentNs == ns && unsteadyMatches > 0) {
                --unsteadyMatches;
                trial.id = files::sha256Hex(trial.id + std::to_string(unsteadyMatches)).substr(0, 16);
                speedup = {speedup.value, speedup.value / 2, speedup.value * 2};
            }
            trial.verdict.comparisons.push_back({"parent", trial.parent, speedup, parentNs, change});
        }
        trial.verdict.comparisons.push_back({"onednn", "1", around(1000 / ns), 1000, gate::Change::Loss});
    }
};

/// A workspace with the workload toy and a K* with three optimizations, and runs of it.
class LearnWorld
{
public:
    LearnWorld()
    {
        const fs::path data =
            fs::path(klineage::test::sourcePath()) / "tests/data/workspace/workloads/toy/workload.toml";
        fs::create_directories(root() / "workloads/toy");
        fs::create_directories(root() / "skills");
        fs::copy_file(data, root() / "workloads/toy/workload.toml");
        write("star.cl", toyKernel({"opt_a", "opt_b", "opt_c"}));
        settings.id = "run-1";
        settings.kind = run::Kind::Deoptimize;
        settings.workload = "toy";
        settings.surface = "opencl";
        settings.platform = "pocl";
        settings.subject = "star.cl";
        settings.provider = "brain";
    }
    /// The same files again: what a kill left.
    LearnWorld(const fs::path &snapshot, run::Settings of)
        : settings(std::move(of))
    {
        fs::copy(snapshot, root(), fs::copy_options::recursive);
    }

    [[nodiscard]] fs::path root() const { return fs::path(m_folder.path().toStdString()) / "w"; }
    [[nodiscard]] fs::path runFolder() const { return root() / "runs" / settings.id; }
    void write(const std::string &name, const std::string &text) const
    {
        fs::create_directories((root() / name).parent_path());
        if (!files::writeFileAtomic(root() / name, text))
            qFatal("cannot write %s", name.c_str());
    }
    [[nodiscard]] std::string read(const std::string &name) const
    {
        return files::readFile(root() / name, std::size_t{64} << 20).value_or(std::string());
    }

    run::Settings settings;
    ToyGate gate;
    run::Watcher watcher;
    std::stop_source stop;

    using Procedure = Result<run::Ending> (*)(run::Context &);
    /// Creates the run, or opens it when it is there, and performs the procedure.
    Result<run::Ending> perform(Procedure procedure, llm::Provider &provider)
    {
        Result<run::Journal> journal = fs::exists(runFolder())
                                           ? run::Journal::open(runFolder())
                                           : run::Journal::create(root() / "runs", settings);
        if (!journal)
            return tl::unexpected(journal.error());
        Result<llm::Author> author = llm::Author::open(runFolder(), provider, {}, settings.capDollars);
        if (!author)
            return tl::unexpected(author.error());
        run::Context context{root(), *journal, *author, gate.function(), stop.get_token(), watcher};
        Result<run::Ending> ending = procedure(context);
        steps = journal->steps();
        return ending;
    }
    std::vector<run::StepRecord> steps; ///< of the last perform()

    /// "load:valid rewrite:rejected …"
    [[nodiscard]] std::string story() const
    {
        std::string text;
        for (const run::StepRecord &step : steps)
            text += (text.empty() ? "" : " ") + step.action + ':' + step.outcome;
        return text;
    }

private:
    QTemporaryDir m_folder{quickFolder()};
};

/// Names and contents of all files below a folder but the hidden ones.
inline std::map<std::string, std::string> filesBelow(const fs::path &folder)
{
    std::map<std::string, std::string> files;
    for (const fs::directory_entry &entry : fs::recursive_directory_iterator(folder)) {
        const std::string name = entry.path().lexically_relative(folder).string();
        if (entry.is_regular_file() && name.find("/.") == std::string::npos && name[0] != '.')
            files[name] = files::readFile(entry.path(), std::size_t{64} << 20).value_or("?");
    }
    return files;
}

/// What a kill could leave at each moment of a run: a copy of the workspace before each request and each trial, after each exchange and
/// each step, and before each step's line.
class KillRecorder
{
public:
    KillRecorder(LearnWorld &world, BrainProvider &provider)
        : m_world(world)
    {
        provider.beforeReply = [this] { snapshot(); };
        world.gate.beforeTrial = [this] { snapshot(); };
        world.watcher.spent = [this](const llm::Ledger &) { snapshot(); };
        world.watcher.stepped = [this](const run::StepRecord &) {
            snapshot();
            snapshot();
            dropLastLine(m_snapshots.back() / "runs" / m_world.settings.id / "steps.jsonl");
        };
    }
    [[nodiscard]] const std::vector<fs::path> &snapshots() const { return m_snapshots; }

private:
    void snapshot()
    {
        const fs::path folder = fs::path(m_folder.path().toStdString()) / std::to_string(m_snapshots.size());
        fs::copy(m_world.root(), folder, fs::copy_options::recursive);
        m_snapshots.push_back(folder);
    }
    static void dropLastLine(const fs::path &file)
    {
        const std::string text = files::readFile(file, std::size_t{64} << 20).value_or(std::string());
        const std::size_t before = text.size() < 2 ? std::string::npos : text.rfind('\n', text.size() - 2);
        if (!files::writeFileAtomic(file, before == std::string::npos ? "" : text.substr(0, before + 1)))
            qFatal("cannot cut steps.jsonl");
    }

    LearnWorld &m_world;
    QTemporaryDir m_folder{quickFolder()};
    std::vector<fs::path> m_snapshots;
};

} // namespace klineage::tests
