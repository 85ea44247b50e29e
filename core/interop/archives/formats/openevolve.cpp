// SPDX-License-Identifier: GPL-3.0-or-later
// A checkpoint of OpenEvolve: metadata.json (islands, the best program's id) and programs/ID.json, each with its parent's id, its
// generation and metrics. There is no word for "correct"; the score is the metric combined_score, or else the mean of the numbers.
#include "core/interop/archives/archivetext.h"
#include "core/interop/archives/formats/archivefolder.h"
#include "core/interop/archives/formats/readers.h"

namespace klineage::interop {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr const char *programsFolder = "programs";
constexpr const char *combinedScore = "combined_score";

class Checkpoint : private ArchiveFolder
{
public:
    Checkpoint(const fs::path &folder, const std::stop_token &stop)
        : ArchiveFolder(folder, 1, stop)
    {}

    Archive run()
    {
        m_archive.system = "OpenEvolve";
        m_archive.word = "openevolve";
        m_archive.name = root().filename().string();
        close(m_archive, walk());
        m_archive.best = m_metadata.best;
        if (!m_hasMetadata)
            m_archive.notes.emplace_back(
                "There is no metadata.json that can be read: the best program is the one with the "
                "best score, and islands are those that programs name.");
        for (ArchivedProgram &program : m_archive.programs) {
            if (const auto island = m_metadata.islands.find(program.id); island != m_metadata.islands.end())
                program.island = island->second;
        }
        return std::move(m_archive);
    }

private:
    /// Artifacts and logs lie in other folders.
    bool takeWhole(const fs::path &folder, const std::vector<fs::directory_entry> &) override
    {
        return folder != root() && folder != root() / programsFolder;
    }

    void takeFile(const fs::path &file) override
    {
        if (file == root() / "metadata.json")
            takeMetadata(file);
        else if (file.parent_path() == root() / programsFolder)
            takeProgram(file);
    }

    void takeMetadata(const fs::path &file)
    {
        const std::optional<std::string> text = take(file);
        if (!text)
            return;
        Result<OpenEvolveMetadata> metadata = parseOpenEvolveMetadata(*text, shown(file));
        if (!metadata)
            return skip(shown(file), metadata.error().message);
        m_metadata = std::move(*metadata);
        m_hasMetadata = true;
    }

    void takeProgram(const fs::path &file)
    {
        if (file.extension() != ".json")
            return skip(shown(file), "It is no program (.json).");
        if (m_archive.programs.size() >= maxArchivedPrograms)
            return skip(shown(file), "There are 20000 programs before it.");
        const std::optional<std::string> text = take(file);
        if (!text)
            return;
        Result<ArchivedProgram> program = parseOpenEvolveProgram(*text, shown(file));
        if (!program)
            return skip(shown(file), program.error().message);
        program->source = shown(file);
        m_archive.programs.push_back(std::move(*program));
    }

    Archive m_archive;
    OpenEvolveMetadata m_metadata;
    bool m_hasMetadata = false;
};

} // namespace

Result<ArchivedProgram> parseOpenEvolveProgram(std::string_view text, const std::string &where)
{
    const Result<json> root = readPythonJson(text, where);
    if (!root)
        return tl::unexpected(root.error());
    if (!root->is_object())
        return fail(ErrorCode::InvalidInput, where + " is no program: it is not an object.");
    const json *code = memberOf(*root, "code");
    if (!code || !code->is_string())
        return fail(ErrorCode::InvalidInput, where + " is no program: it has no text 'code'.");
    ArchivedProgram program;
    program.id = idMember(*root, "id");
    program.parent = idMember(*root, "parent_id");
    if (const std::string why = idProblem(program); !why.empty())
        return fail(ErrorCode::InvalidInput, where + " is no program that can be placed: " + why);
    program.code = code->get<std::string>();
    program.language = firstLine(textMember(*root, "language"), 40);
    program.generation = countMember(*root, "generation");
    if (const json *metadata = memberOf(*root, "metadata")) {
        program.island = countMember(*metadata, "island");
        program.change = firstLine(textMember(*metadata, "changes"));
    }
    if (const json *metrics = memberOf(*root, "metrics")) {
        program.score = numberMember(*metrics, combinedScore);
        program.metrics = numbersOf(*metrics, combinedScore);
        program.scoreName = combinedScore;
        if (!program.score && !metrics->contains(combinedScore) && !program.metrics.empty()) {
            double sum = 0;
            for (const auto &[name, value] : program.metrics)
                sum += value / static_cast<double>(program.metrics.size());
            program.score = sum;
            program.scoreName = "mean of its metrics";
        }
    }
    judgeText(program);
    return program;
}

Result<OpenEvolveMetadata> parseOpenEvolveMetadata(std::string_view text, const std::string &where)
{
    const Result<json> root = readPythonJson(text, where);
    if (!root)
        return tl::unexpected(root.error());
    if (!root->is_object())
        return fail(ErrorCode::InvalidInput, where + " says nothing of a checkpoint: it is not an object.");
    OpenEvolveMetadata metadata;
    metadata.best = idMember(*root, "best_program_id");
    const json *islands = memberOf(*root, "islands");
    if (!islands || !islands->is_array())
        return metadata;
    for (std::size_t island = 0; island < islands->size(); ++island) {
        if (!islands->at(island).is_array())
            continue;
        for (const json &id : islands->at(island)) {
            if (id.is_string())
                metadata.islands.emplace(id.get<std::string>(), static_cast<std::int64_t>(island));
        }
    }
    return metadata;
}

Result<Archive> readOpenEvolve(const fs::path &folder, const std::stop_token &stop)
{
    Archive archive = Checkpoint(folder, stop).run();
    if (stop.stop_requested())
        return fail(ErrorCode::Cancelled, "The import was stopped; nothing was written.");
    return archive;
}

} // namespace klineage::interop
