// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/interop/problems/importproblems.h"

#include "core/files/atomicfile.h"
#include "core/files/jsonlines.h"
#include "core/files/utf8text.h"
#include "core/interop/folderimport.h"
#include "core/interop/problems/kernelbench.h"
#include "core/interop/problems/proof.h"
#include "core/interop/problems/storeworkload.h"

#include <nlohmann/json.hpp>

namespace klineage::interop {

namespace {

namespace fs = std::filesystem;

constexpr FolderImport::Limits problemLimits = {
    .depth = 8,
    .tooDeep = "It lies more than eight folders deep.",
    .listed = 20'000,
    .tooMany = "More than 20000 files; what comes after them was not looked at."};
constexpr std::size_t maxBindings = 10'000; ///< of a file
constexpr std::size_t maxBindingsBytes = std::size_t{64} << 20;

class ProblemImport : public FolderImport
{
public:
    ProblemImport(fs::path root, fs::path workloads, const ProblemOptions &options,
                  const std::stop_token &stop)
        : FolderImport(std::move(root), problemLimits, stop)
        , m_workloads(std::move(workloads))
        , m_options(options)
    {}

    std::vector<ImportEntry> run() { return walk(); }

private:
    void takeFile(const fs::path &file) override
    {
        const std::string extension = file.extension().string();
        if (extension == ".json")
            takeDefinition(file);
        else if (extension == ".py")
            takeKernelBench(file);
        else if (extension == ".jsonl")
            takeBindings(file);
        else
            skip(shown(file), "It is neither a definition (.json) nor a problem of KernelBench (.py).");
    }

    void takeDefinition(const fs::path &file)
    {
        const std::optional<std::string> text = read(file, shown(file), maxDefinitionBytes);
        if (!text)
            return;
        if (!looksLikeDefinition(*text)) {
            const auto root = nlohmann::json::parse(*text, nullptr, false);
            const bool solution = root.is_object() && root.contains("sources");
            return skip(shown(file), root.is_discarded() ? "It is no JSON."
                                     : solution
                                         ? "It is a solution, not a problem."
                                         : "It has no axes, inputs and outputs, so it is no definition.");
        }
        Result<Definition> definition = parseDefinition(*text, shown(file));
        if (!definition)
            return skip(shown(file), definition.error().message);
        ImportEntry entry{shown(file), {}, {}, false, {}};
        if (definition->reference.empty()) {
            const Result<std::string> beside =
                files::readFile(file.parent_path() / referenceName, workload::maxOracleSourceBytes);
            if (beside && files::isUtf8Text(*beside)) {
                definition->reference = *beside;
                entry.notes.push_back("The reference is reference.py beside it.");
            }
        }
        std::vector<Binding> bindings;
        for (const fs::path &path : bindingFiles(file)) {
            if (!readBindings(path, definition->name, bindings, entry))
                break;
        }
        Result<Draft> draft = draftOf(*definition, bindings, m_options.draft);
        if (draft)
            draft->workload.description += (draft->workload.description.empty() ? "" : "\n")
                                           + ("Imported from the FlashInfer Trace definition '"
                                              + definition->name.substr(0, 200) + "'.");
        finish(std::move(entry), std::move(draft));
    }

    /// Where the workloads of a definition lie: beside it, or in the folder of workloads of a FlashInfer Trace data set.
    static std::vector<fs::path> bindingFiles(const fs::path &definition)
    {
        fs::path other;
        bool found = false;
        for (const fs::path &part : definition.parent_path()) {
            const bool is = part == "definitions";
            other /= is ? fs::path("workloads") : part;
            found = found || is;
        }
        fs::path own = definition.filename();
        own.replace_extension(".jsonl");
        std::vector<fs::path> files;
        for (const fs::path &path :
             {definition.parent_path() / own, definition.parent_path() / "workload.jsonl",
              definition.parent_path() / "workloads.jsonl", found ? other / own : fs::path()}) {
            std::error_code ignored;
            if (!path.empty() && fs::is_regular_file(fs::symlink_status(path, ignored)))
                files.push_back(path);
        }
        return files;
    }

    bool readBindings(const fs::path &path, const std::string &definition, std::vector<Binding> &bindings,
                      ImportEntry &entry)
    {
        const Result<std::string> text = files::readFile(path, maxBindingsBytes);
        const auto lines =
            text ? files::splitLines(*text, shown(path)) : Result<files::Lines>(tl::unexpected(text.error()));
        if (!lines) {
            entry.notes.push_back("Its workloads were not read: " + lines.error().message);
            return true;
        }
        std::size_t wrong = 0;
        std::string first;
        const auto take = [&](const files::Line &line) {
            Result<Binding> binding =
                parseBinding(line.text, shown(path) + ":" + std::to_string(line.number));
            if (!binding) {
                first = wrong++ == 0 ? binding.error().message : first;
                return;
            }
            if (binding->definition.empty() || binding->definition == definition)
                bindings.push_back(std::move(*binding));
        };
        for (const files::Line &line : lines->lines) {
            if (bindings.size() >= maxBindings) {
                entry.notes.push_back("Only the first 10000 workloads were read.");
                return false;
            }
            take(line);
        }
        if (lines->tornTail)
            take(*lines->tornTail);
        if (wrong > 0)
            entry.notes.push_back(
                std::to_string(wrong)
                + (wrong == 1 ? " workload cannot be read: " : " workloads cannot be read, the first: ")
                + first);
        return true;
    }

    void takeBindings(const fs::path &file)
    {
        // Read with the definition that they belong to; a file that belongs to none would be passed over in silence.
        fs::path definition = file;
        definition.replace_extension(".json");
        fs::path other;
        for (const fs::path &part : definition.parent_path())
            other /= part == "workloads" ? fs::path("definitions") : part;
        std::error_code ignored;
        const bool belongs = fs::exists(definition, ignored)
                             || fs::exists(other / definition.filename(), ignored)
                             || ((file.stem() == "workload" || file.stem() == "workloads")
                                 && fs::exists(file.parent_path() / "definition.json", ignored));
        if (!belongs || file == root())
            skip(shown(file),
                 "It has workloads or traces, which are read with their definition; import that one.");
    }

    void takeKernelBench(const fs::path &file)
    {
        std::error_code ignored;
        if (file.filename() == referenceName && fs::exists(file.parent_path() / "definition.json", ignored))
            return; // part of a definition
        const std::optional<std::string> text = read(file, shown(file), workload::maxOracleSourceBytes / 2);
        if (!text)
            return;
        if (!looksLikeKernelBench(*text))
            return skip(
                shown(file),
                "It has no class Model with get_inputs() and get_init_inputs(), so it is no problem of KernelBench.");
        Result<Draft> draft = draftOfKernelBench(file.stem().string(), *text, m_options.draft.values, stop());
        if (draft)
            draft->workload.description =
                "Imported from the KernelBench problem '" + file.filename().string() + "'.";
        finish({shown(file), {}, {}, false, {}}, std::move(draft));
    }

    void finish(ImportEntry entry, Result<Draft> draft)
    {
        Status proved = draft ? Status() : Status(tl::unexpected(draft.error()));
        std::error_code ignored;
        if (proved && fs::exists(m_workloads / draft->workload.name, ignored)) {
            entry.isThere = true;
            entry.reason = "There is a workload '" + draft->workload.name + "' already.";
            add(std::move(entry));
            return;
        }
        if (proved)
            proved = prove(*draft, stop());
        if (proved && !m_options.dryRun)
            proved = storeWorkload(m_workloads, draft->workload);
        if (draft && proved) {
            entry.name = draft->workload.name;
            entry.notes.insert(entry.notes.end(), draft->notes.begin(), draft->notes.end());
        }
        if (!proved)
            entry.reason = proved.error().message;
        add(std::move(entry));
    }

    fs::path m_workloads;
    const ProblemOptions &m_options;
};

} // namespace

Result<std::vector<ImportEntry>> importProblems(const fs::path &from, const fs::path &workloads,
                                                const ProblemOptions &options, const std::stop_token &stop)
{
    std::error_code problem;
    if (!fs::exists(from, problem))
        return fail(ErrorCode::NotFound, "There is no '" + from.string() + "'.");
    const fs::path root = from.lexically_normal();
    auto entries =
        ProblemImport(root.has_filename() ? root : root.parent_path(), workloads, options, stop).run();
    if (stop.stop_requested())
        return fail(ErrorCode::Cancelled, "The import was stopped; what had been imported stays.");
    return entries;
}

} // namespace klineage::interop
