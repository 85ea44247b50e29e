// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/interop/traceset/exportlineage.h"

#include "core/base/listtext.h"
#include "core/files/atomicfile.h"
#include "core/files/sha256.h"
#include "core/files/utf8text.h"
#include "core/interop/traceset/datasettrace.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

namespace klineage::interop {

namespace {

namespace fs = std::filesystem;
using files::OrderedJson;

constexpr std::size_t digitsOfHash = 12; ///< of what is no state and no attempt, in its name

/// The format's languages that surfaces here can have; the words are the same.
bool isDatasetLanguage(std::string_view word)
{
    return word == "cuda" || word == "triton" || word == "tilelang";
}

/// A candidate's text, once for each.
struct Text {
    std::string row;                              ///< "K03", "R02a", "098ca8a54bc1"
    fs::path file;                                ///< below the lineage's folder
    std::string name;                             ///< of its solution; empty: it is none
    std::map<std::string, std::int64_t> tunables; ///< their defaults
};

class LineageExport
{
public:
    LineageExport(const lineage::Lineage &lineage, const workload::Workload &workload,
                  const DatasetOptions &options, DatasetDefinition definition)
        : m_lineage(lineage)
        , m_workload(workload)
        , m_options(options)
        , m_definition(std::move(definition))
    {}

    LineageDataset run()
    {
        m_made.definition = m_definition.name;
        m_made.lost = m_definition.lost;
        add("definitions/" + m_definition.opType + '/' + m_definition.name + ".json",
            m_definition.json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + '\n');
        addWorkloads();
        findTexts();
        addSolutions();
        addTraces();
        for (const auto &[why, count] : m_leftOut)
            m_made.lost.push_back(
                fmt::format("{} {} left out: {}.", count, count == 1 ? "trial is" : "trials are", why));
        return std::move(m_made);
    }

private:
    void add(std::string path, std::string text)
    {
        m_made.files.push_back({std::move(path), std::move(text)});
    }

    /// Files that workloads name, once each.
    void addNamed(const std::vector<DatasetFile> &files)
    {
        for (const DatasetFile &file : files) {
            if (m_named.insert(file.path).second)
                m_made.files.push_back(file);
        }
    }

    [[nodiscard]] std::string ownFolder(const char *kind) const
    {
        return std::string(kind) + '/' + m_options.author + '/' + m_definition.opType + '/'
               + m_definition.name + '/';
    }

    void addWorkloads()
    {
        std::string lines;
        for (const workload::Case &c : m_workload.cases) {
            if (!c.drawn.empty() || !c.distributions.empty())
                continue;
            Result<DatasetLine> given = datasetWorkloadOf(m_definition, m_workload, c);
            if (!given)
                continue;
            addNamed(given->files);
            OrderedJson line;
            line["definition"] = m_definition.name;
            line["workload"] = std::move(given->json);
            line["solution"] = nullptr;
            line["evaluation"] = nullptr;
            lines += files::oneLine(line) + '\n';
            ++m_made.workloads;
        }
        add("workloads/" + m_definition.opType + '/' + m_definition.name + ".jsonl", std::move(lines));
    }

    /// Whether a name in a log is that of a file below the lineage.
    static bool isBelow(const fs::path &file)
    {
        return !file.empty() && file.is_relative()
               && std::find(file.begin(), file.end(), fs::path("..")) == file.end();
    }

    void take(const std::string &row, const fs::path &file, const std::string &expected = {})
    {
        if (!isBelow(file))
            return;
        Result<std::string> text = files::readFile(m_lineage.directory / file, kernel::maxCandidateBytes);
        if (!text)
            return;
        const std::string sha = files::sha256Hex(*text);
        if (m_texts.contains(sha) || (!expected.empty() && sha != expected))
            return;
        m_order.push_back(sha);
        m_texts[sha] = {row.empty() ? sha.substr(0, digitsOfHash) : row, file, {}, {}};
        m_contents[sha] = std::move(*text);
    }

    void findTexts()
    {
        for (const lineage::State &state : m_lineage.states)
            take(state.id, state.file);
        for (const lineage::Attempt &attempt : m_lineage.attempts)
            take(attempt.id, attempt.file);
        for (const gate::Trial &trial : m_lineage.trials) {
            if (m_texts.contains(trial.candidate))
                continue;
            take({}, trial.file, trial.candidate);
            take({}, lineage::branchFileName(trial.candidate, trial.surface), trial.candidate);
        }
    }

    /// Where it was judged correct, else where it was tried, else the lineage's platform.
    [[nodiscard]] std::vector<std::string> hardwareOf(const std::string &sha) const
    {
        std::vector<std::string> correct;
        std::vector<std::string> tried;
        const auto remember = [](std::vector<std::string> &devices, const std::string &device) {
            if (!device.empty() && std::find(devices.begin(), devices.end(), device) == devices.end())
                devices.push_back(device);
        };
        for (const gate::Trial &trial : m_lineage.trials) {
            if (trial.candidate != sha)
                continue;
            remember(tried, trial.environment.device);
            if (trial.verdict.status == gate::VerdictStatus::Correct)
                remember(correct, trial.environment.device);
        }
        return !correct.empty() ? correct : !tried.empty() ? tried : std::vector{m_lineage.platform};
    }

    [[nodiscard]] std::string descriptionOf(const Text &text) const
    {
        std::vector<std::string> parts;
        const auto sentence = [&](std::string part) {
            if (!part.empty())
                parts.push_back(part.back() == '.' ? std::move(part) : part + '.');
        };
        if (const lineage::State *state = m_lineage.findState(text.row)) {
            sentence(state->id + " of " + std::to_string(m_lineage.states.size()) + " states of "
                     + m_lineage.key() + (state->title.empty() ? "" : ": " + state->title));
            if (const lineage::Transition *step = m_lineage.transitionTo(state->id)) {
                sentence("From " + step->from + ", " + step->category + " at " + step->locus);
                sentence(step->summary);
                sentence(step->card.empty() ? "" : "Card " + step->card);
            }
        }
        for (const lineage::Attempt &attempt : m_lineage.attempts) {
            if (attempt.id != text.row)
                continue;
            sentence("Rejected attempt " + attempt.id + " from " + attempt.parent + " of " + m_lineage.key()
                     + (attempt.title.empty() ? "" : ": " + attempt.title));
            sentence(attempt.reason);
        }
        if (parts.empty())
            sentence("A candidate beside " + m_lineage.key());
        sentence(m_lineage.origin.empty() ? "" : "Origin of the lineage: " + m_lineage.origin);
        sentence(
            "Device code without host code: how it is launched says the TOML in the comment at the head of "
            + text.file.filename().string());
        return joined(parts, " ");
    }

    void addSolutions()
    {
        std::map<std::string, std::vector<std::string>> languages; ///< that the format has not -> rows
        std::vector<std::string> unreadable;
        for (const std::string &sha : m_order) {
            Text &text = m_texts[sha];
            const std::string &content = m_contents[sha];
            const auto candidate = kernel::parseCandidate(content, text.file.string());
            const kernel::Surface surface = candidate ? candidate->surface : m_lineage.surface;
            if (const std::string word = kernel::toString(surface); !isDatasetLanguage(word)) {
                languages[word].push_back(text.row);
                continue;
            }
            if (!candidate || candidate->launches.empty() || !files::isUtf8Text(content)) {
                unreadable.push_back(text.row);
                continue;
            }
            for (const kernel::Tunable &tunable : candidate->tunables)
                text.tunables[tunable.name] = tunable.defaultValue;
            text.name = m_lineage.workload + '_' + m_lineage.folder() + '_' + text.row;
            const std::string path = text.file.filename().string();
            OrderedJson json;
            json["name"] = text.name;
            json["definition"] = m_definition.name;
            json["author"] = m_options.author;
            json["description"] = descriptionOf(text);
            json["spec"] = {{"language", kernel::toString(surface)},
                            {"target_hardware", hardwareOf(sha)},
                            {"entry_point", path + "::" + candidate->launches.front().kernel},
                            {"destination_passing_style", true}};
            json["sources"] = OrderedJson::array();
            json["sources"].push_back({{"path", path}, {"content", content}});
            add(ownFolder("solutions") + text.name + ".json",
                json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + '\n');
            ++m_made.solutions;
        }
        for (const auto &[word, rows] : languages)
            m_made.lost.push_back(fmt::format(
                "{} {} written for the surface '{}', which is no language of the format: no solutions.",
                rows.size(), rows.size() == 1 ? "candidate is" : "candidates are", word));
        if (!unreadable.empty())
            m_made.lost.push_back("No launch plan can be read, so no entry point be named, of "
                                  + listed(unreadable) + ".");
    }

    void addTraces()
    {
        std::string lines;
        for (const gate::Trial &trial : m_lineage.trials) {
            const Result<DatasetLine> trace = traceOf(trial);
            if (!trace) {
                ++m_leftOut[trace.error().message];
                continue;
            }
            addNamed(trace->files);
            lines += files::oneLine(trace->json) + '\n';
            ++m_made.traces;
        }
        if (!lines.empty())
            add(ownFolder("traces") + m_lineage.folder() + ".jsonl", std::move(lines));
    }

    [[nodiscard]] Result<DatasetLine> traceOf(const gate::Trial &trial) const
    {
        const auto text = m_texts.find(trial.candidate);
        if (text == m_texts.end())
            return fail(ErrorCode::NotFound, "the text that they measured is not there");
        if (text->second.name.empty())
            return fail(ErrorCode::InvalidInput, "their candidate is no solution there");
        if (!trial.tunables.empty() && trial.tunables != text->second.tunables)
            return fail(ErrorCode::InvalidInput,
                        "their tunables are not the file's, and a solution has one text");
        return datasetTraceOf(m_definition, m_workload, text->second.name, trial);
    }

    const lineage::Lineage &m_lineage;
    const workload::Workload &m_workload;
    const DatasetOptions &m_options;
    DatasetDefinition m_definition;
    LineageDataset m_made;
    std::vector<std::string> m_order;              ///< of texts, by sha-256
    std::map<std::string, Text> m_texts;           ///< the same
    std::map<std::string, std::string> m_contents; ///< the same
    std::set<std::string> m_named;                 ///< paths of files that workloads name
    std::map<std::string, std::size_t> m_leftOut;  ///< why -> trials
};

Status writeBelow(const fs::path &folder, const DatasetFile &file)
{
    const fs::path path = folder / file.path;
    std::error_code problem;
    fs::create_directories(path.parent_path(), problem);
    if (problem)
        return fail(ErrorCode::Io,
                    "Cannot create '" + path.parent_path().string() + "': " + problem.message() + '.');
    return files::writeFileAtomic(path, file.text);
}

} // namespace

bool isDatasetAuthor(std::string_view text)
{
    return !text.empty() && text.size() <= 64 && text.front() != '.'
           && std::all_of(text.begin(), text.end(), [](char c) {
                  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
                         || c == '.' || c == '-' || c == '_';
              });
}

Result<LineageDataset> datasetOf(const lineage::Lineage &lineage, const workload::Workload &workload,
                                 const DatasetOptions &options)
{
    Result<DatasetDefinition> definition = datasetDefinitionOf(workload);
    if (!definition)
        return tl::unexpected(definition.error());
    return LineageExport(lineage, workload, options, std::move(*definition)).run();
}

Status writeDataset(const LineageDataset &dataset, const fs::path &folder)
{
    const DatasetFile &definition = dataset.files.front();
    const auto there = files::readFile(folder / definition.path, std::size_t{4} << 20);
    if (there ? *there != definition.text : there.error().code != ErrorCode::NotFound)
        return fail(ErrorCode::Conflict,
                    "There is another definition in '" + (folder / definition.path).string()
                        + "'; nothing was written.",
                    "Write into another folder, or remove that definition with its solutions and traces.");
    for (const DatasetFile &file : dataset.files) {
        if (Status written = writeBelow(folder, file); !written)
            return written;
    }
    return {};
}

std::vector<std::string> datasetLimits()
{
    return {
        "Solutions have no host code: the format wants a function that a builder can call, and a candidate is device code "
        "with a launch plan. The plan stays in the comment at the head of the source, entry_point names the first kernel "
        "that it launches, and there is no binding.",
        "The largest errors of an output are not recorded, so correctness has neither max_relative_error nor "
        "max_absolute_error, which FlashInfer-Bench reads as 0. What the trial has stands in correctness.extra.",
        "reference_latency_ms and speedup_factor are against the fastest vendor routine of the trial, named in "
        "correctness.extra.reference; the definition's own reference was not timed. Where no routine took part both are left "
        "out, which FlashInfer-Bench reads as 0.",
        "latency_ms is a median and speedup_factor that of paired rounds; intervals and the parent's figures are in "
        "correctness.extra.",
        "Contents of inputs ('random' has no parameters), tolerances, counts of operations and bytes; metrics, samples, "
        "hotspots and machine code of trials; the order of the states, comments and cards beyond the descriptions.",
    };
}

} // namespace klineage::interop
