// SPDX-License-Identifier: GPL-3.0-or-later
// A folder of AdaExplore's: step_N.py is the program of a step, step_N_log.json its node in the tree (id, parent, depth, how it was
// made, the best node so far), step_N_metrics.json what came of it: compiled, correctness and, in runtime_stats, the speedup fast_p.
#include "core/interop/archives/archivetext.h"
#include "core/interop/archives/formats/archivefolder.h"
#include "core/interop/archives/formats/readers.h"

#include <algorithm>
#include <charconv>

namespace klineage::interop {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

/// N of "step_N" + end; nothing when it is another name.
std::optional<int> stepOf(const std::string &name, std::string_view end)
{
    constexpr std::string_view begin = "step_";
    if (!name.starts_with(begin) || !name.ends_with(end) || name.size() <= begin.size() + end.size())
        return std::nullopt;
    int step = 0;
    const char *last = name.data() + name.size() - end.size();
    const auto [stopped, problem] = std::from_chars(name.data() + begin.size(), last, step);
    return problem == std::errc() && stopped == last && step >= 0 ? std::optional(step) : std::nullopt;
}

class StepFolder : private ArchiveFolder
{
public:
    StepFolder(const fs::path &folder, const std::stop_token &stop)
        : ArchiveFolder(folder, 0, stop)
    {}

    Archive run()
    {
        m_archive.system = "AdaExplore";
        m_archive.word = "adaexplore";
        m_archive.name = root().filename().string();
        close(m_archive, walk());
        std::sort(m_steps.begin(), m_steps.end(),
                  [](const Step &a, const Step &b) { return a.number < b.number; });
        Tally again;
        std::map<std::string, std::size_t> first;
        for (Step &step : m_steps) {
            if (!step.read.best.empty())
                m_archive.best = step.read.best;
            ArchivedProgram &program = step.read.program;
            // A step that made nothing new logs the node that it began at.
            const auto [known, isNew] = first.emplace(program.id, m_archive.programs.size());
            if (!isNew && m_archive.programs[known->second].code == program.code)
                again.add("step " + std::to_string(step.number));
            else
                m_archive.programs.push_back(std::move(program));
        }
        if (again.count() > 0)
            m_archive.notes.push_back("Steps that log an earlier program again: " + again.text() + '.');
        return std::move(m_archive);
    }

private:
    struct Step {
        int number;
        AdaExploreStep read;
    };

    bool takeWhole(const fs::path &folder, const std::vector<fs::directory_entry> &) override
    {
        return folder != root();
    }

    void takeFile(const fs::path &file) override
    {
        const std::string name = file.filename().string();
        std::error_code ignored;
        if (const auto step = stepOf(name, "_log.json"))
            takeStep(file, *step);
        else if (const auto alone = stepOf(name, ".py");
                 alone && !fs::exists(beside(file, *alone, "_log.json"), ignored))
            skip(shown(file), "There is no step_" + std::to_string(*alone)
                                  + "_log.json beside it, which says where it belongs.");
    }

    static fs::path beside(const fs::path &file, int step, const char *end)
    {
        return file.parent_path() / ("step_" + std::to_string(step) + end);
    }

    void takeStep(const fs::path &file, int number)
    {
        if (m_steps.size() >= maxArchivedPrograms)
            return skip(shown(file), "There are 20000 steps before it.");
        const std::optional<std::string> log = take(file);
        const std::optional<std::string> code = log ? take(beside(file, number, ".py")) : std::nullopt;
        if (!code)
            return;
        std::error_code ignored;
        const fs::path measured = beside(file, number, "_metrics.json");
        std::optional<std::string> metrics;
        if (fs::exists(fs::symlink_status(measured, ignored)))
            metrics = take(measured);
        if (const auto read = readPythonJson(metrics.value_or("{}"), shown(measured)); !read) {
            skip(shown(measured), read.error().message + " The program of that step is taken without it.");
            metrics.reset();
        }
        Result<AdaExploreStep> step = parseAdaExploreStep(*log, metrics.value_or(""), shown(file));
        if (!step)
            return skip(shown(file), step.error().message);
        step->program.code = *code;
        step->program.source = shown(beside(file, number, ".py"));
        judgeText(step->program);
        m_steps.push_back({number, std::move(*step)});
    }

    Archive m_archive;
    std::vector<Step> m_steps;
};

} // namespace

Result<AdaExploreStep> parseAdaExploreStep(std::string_view log, std::string_view metrics,
                                           const std::string &where)
{
    const Result<json> node = readPythonJson(log, where);
    if (!node)
        return tl::unexpected(node.error());
    const Result<json> measured =
        metrics.empty() ? Result<json>(json::object()) : readPythonJson(metrics, where + ", its metrics");
    if (!measured)
        return tl::unexpected(measured.error());
    if (!node->is_object() || !measured->is_object())
        return fail(ErrorCode::InvalidInput, where + " is no step: it or its metrics are not an object.");
    AdaExploreStep step;
    ArchivedProgram &program = step.program;
    program.id = idMember(*node, "node_id");
    program.parent = idMember(*node, "parent_node_id");
    if (const std::string why = idProblem(program); !why.empty())
        return fail(ErrorCode::InvalidInput, where + " is no step that can be placed: " + why);
    step.best = idMember(*node, "global_best_node_id");
    program.language = "python";
    program.generation = countMember(*node, "depth");
    program.change = firstLine(textMember(*node, "created_by"));
    program.correct = flagMember(*measured, "correctness");
    if (flagMember(*measured, "compiled") == false) {
        program.verdict = "does not compile";
        program.correct = false;
    } else if (program.correct) {
        program.verdict = *program.correct ? "correct" : "not correct";
    }
    program.scoreName = "fast_p";
    if (const json *stats = memberOf(*measured, "runtime_stats"))
        program.score = numberMember(*stats, "fast_p");
    if (const auto runtime = numberMember(*measured, "runtime"); runtime && *runtime > 0)
        program.metrics.emplace_back("runtime", *runtime);
    return step;
}

Result<Archive> readAdaExplore(const fs::path &folder, const std::stop_token &stop)
{
    Archive archive = StepFolder(folder, stop).run();
    if (stop.stop_requested())
        return fail(ErrorCode::Cancelled, "The import was stopped; nothing was written.");
    return archive;
}

} // namespace klineage::interop
