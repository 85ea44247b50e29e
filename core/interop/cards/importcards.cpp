// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/interop/cards/importcards.h"

#include "core/files/atomicfile.h"
#include "core/files/sha256.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <set>

namespace klineage::interop {

namespace {

namespace fs = std::filesystem;

constexpr int maxFolderDepth = 6;
constexpr std::size_t maxEntries = 20'000;

bool isUtf8Text(const std::string &text)
{
    try {
        static_cast<void>(nlohmann::json(text).dump());
        return text.find('\0') == std::string::npos;
    } catch (const nlohmann::json::exception &) {
        return false;
    }
}

std::string loweredName(std::string text)
{
    std::transform(text.begin(), text.end(), text.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    return text;
}

/// The first line with words, of what may say the licence of a library.
std::string licenseIn(const fs::path &folder)
{
    for (const char *name : {"LICENSE", "LICENSE.md", "LICENSE.txt", "LICENCE", "COPYING"}) {
        const Result<std::string> text = files::readFile(folder / name, std::size_t{1} << 20);
        if (!text || !isUtf8Text(*text))
            continue;
        const std::size_t begin = text->find_first_not_of(" \t\r\n#");
        if (begin == std::string::npos)
            continue;
        const std::string line = text->substr(begin, text->find_first_of("\r\n", begin) - begin);
        return line.substr(0, line.find_last_not_of(" \t") + 1).substr(0, 200);
    }
    return "unknown";
}

class Importer
{
public:
    Importer(fs::path root, const skills::CardStore &store, const ImportOptions &options)
        : m_root(std::move(root))
        , m_store(store)
        , m_options(options)
    {
        for (const skills::CardRecord &record : store.readAll()) {
            m_names.insert(record.card.name);
            if (record.card.imported)
                m_known[record.card.imported->sha256] = record.card.name;
        }
    }

    std::vector<ImportEntry> run()
    {
        std::error_code ignored;
        const bool isFolder = fs::is_directory(m_root, ignored);
        const fs::path folder = isFolder ? m_root : m_root.parent_path();
        m_library.origin = m_options.origin.empty()
                               ? fs::absolute(m_root, ignored).lexically_normal().filename().string()
                               : m_options.origin;
        if (m_library.origin.empty() || !isUtf8Text(m_library.origin))
            m_library.origin = "a folder";
        m_library.license = m_options.license.empty() ? licenseIn(folder) : m_options.license;
        if (isFolder)
            takeFolder(m_root, 0);
        else
            takeFile(m_root);
        return std::move(m_entries);
    }

private:
    std::string shown(const fs::path &path) const
    {
        const std::string text = path.lexically_relative(m_root).string();
        return text.empty() || text == "." ? path.filename().string() : text;
    }
    void skip(const std::string &source, std::string reason)
    {
        m_entries.push_back({source, {}, std::move(reason), false, {}});
    }
    [[nodiscard]] bool isFull()
    {
        if (m_entries.size() < maxEntries && m_looked < maxEntries)
            return false;
        if (!std::exchange(m_saidFull, true))
            skip(shown(m_root), "More than 20000 entries; what comes after them was not looked at.");
        return true;
    }

    /// A folder is a card when it has a SKILL.md, and else the folder of such folders.
    void takeFolder(const fs::path &folder, int depth)
    {
        std::vector<fs::directory_entry> entries;
        std::error_code problem;
        for (fs::directory_iterator it(folder, problem), end; !problem && it != end; it.increment(problem)) {
            ++m_looked;
            if (isFull())
                return;
            entries.push_back(*it);
        }
        if (problem)
            return skip(shown(folder), "It cannot be listed: " + problem.message() + '.');
        std::sort(entries.begin(), entries.end());
        const auto skill = std::find_if(entries.begin(), entries.end(), [](const fs::directory_entry &entry) {
            return loweredName(entry.path().filename().string()) == "skill.md";
        });
        if (skill != entries.end())
            return takeSkill(skill->path(), folder);
        const std::size_t before = m_entries.size();
        for (const fs::directory_entry &entry : entries) {
            const std::string name = entry.path().filename().string();
            std::error_code ignored;
            if (name.starts_with('.'))
                continue;
            if (entry.is_symlink(ignored))
                skip(shown(entry.path()), "It is a link, which is not followed.");
            else if (entry.is_directory(ignored) && depth < maxFolderDepth)
                takeFolder(entry.path(), depth + 1);
            else if (entry.is_directory(ignored))
                skip(shown(entry.path()), "It lies more than six folders deep.");
            else if (loweredName(entry.path().extension().string()) == ".json")
                takeFile(entry.path());
        }
        if (m_entries.size() > before)
            return;
        const bool isOwn = fs::exists(folder / "card.toml", problem);
        skip(shown(folder),
             isOwn ? "It has a card.toml, so it is a card of this program: copy its folder into skills/."
                   : "It has no SKILL.md and no JSON file.");
    }

    void takeFile(const fs::path &file)
    {
        if (loweredName(file.extension().string()) == ".json")
            takeJson(file);
        else
            takeSkill(file, file.parent_path());
    }

    void takeSkill(const fs::path &file, const fs::path &folder)
    {
        const std::string source = shown(folder == m_root ? file : folder);
        const std::optional<std::string> text = read(file, source, maxSkillBytes);
        if (!text)
            return;
        Result<ForeignCard> foreign = readSkillFile(*text, folder.filename().string(), m_library);
        if (!foreign)
            return skip(source, foreign.error().message);
        take(source, std::move(*foreign), "original.md", *text);
    }

    void takeJson(const fs::path &file)
    {
        const std::string source = shown(file);
        const std::optional<std::string> text = read(file, source, maxCardFileBytes);
        if (!text)
            return;
        Result<std::vector<Result<ForeignCard>>> cards = readCardJson(*text, file.stem().string(), m_library);
        if (!cards)
            return skip(source, cards.error().message);
        if (cards->empty())
            return skip(source, "It has no cards.");
        const nlohmann::json value = nlohmann::json::parse(*text, nullptr, false);
        const nlohmann::json &list =
            value.is_object() && value.contains("skills") ? value.at("skills") : value;
        for (std::size_t i = 0; i < cards->size(); ++i) {
            const std::string where =
                cards->size() == 1 ? source : source + ", card " + std::to_string(i + 1);
            if (!(*cards)[i])
                skip(where, (*cards)[i].error().message);
            else
                take(where, std::move(*(*cards)[i]), "original.json",
                     (list.is_array() ? list.at(i) : list).dump(2) + '\n');
        }
    }

    std::optional<std::string> read(const fs::path &file, const std::string &source, std::size_t most)
    {
        std::error_code ignored;
        if (fs::is_symlink(file, ignored)) {
            skip(source, "It is a link, which is not followed.");
            return std::nullopt;
        }
        Result<std::string> text = files::readFile(file, most);
        if (!text) {
            skip(source, text.error().message);
            return std::nullopt;
        }
        if (!isUtf8Text(*text)) {
            skip(source, "It is no UTF-8 text.");
            return std::nullopt;
        }
        return std::move(*text);
    }

    void take(const std::string &source, ForeignCard foreign, const char *originalName,
              const std::string &original)
    {
        if (isFull())
            return;
        skills::Card &card = foreign.card;
        card.imported->sha256 = files::sha256Hex(original);
        ImportEntry entry{source, {}, {}, false, std::move(foreign.notes)};
        if (const auto known = m_known.find(card.imported->sha256); known != m_known.end()) {
            entry.reason = "It is the card '" + known->second + "' already.";
            entry.isThere = true;
        } else if (foreign.carrier.size() > skills::maxCarrierBytes) {
            entry.reason = "Its code is longer than 256 KiB.";
        } else {
            card.name = freeName(card.name);
            const Status stored = m_options.dryRun ? Status() : store(foreign, originalName, original);
            if (stored) {
                entry.card = card.name;
                m_names.insert(card.name);
                m_known[card.imported->sha256] = card.name;
            } else {
                entry.reason = stored.error().message;
            }
        }
        m_entries.push_back(std::move(entry));
    }

    Status store(const ForeignCard &foreign, const char *originalName, const std::string &original) const
    {
        const Result<skills::CardRecord> record = m_store.create(foreign.card, foreign.carrier);
        if (!record)
            return tl::unexpected(record.error());
        return files::writeFileAtomic(record->directory / originalName, original);
    }

    /// The name, or with a number behind it when another card has it.
    std::string freeName(const std::string &name) const
    {
        std::string free = name;
        for (int number = 2; m_names.count(free) > 0; ++number) {
            const std::string end = '-' + std::to_string(number);
            free = cardNameFrom(name.substr(0, 64 - end.size())) + end;
        }
        return free;
    }

    fs::path m_root;
    const skills::CardStore &m_store;
    const ImportOptions &m_options;
    ForeignLibrary m_library;
    std::set<std::string> m_names;
    std::map<std::string, std::string> m_known; ///< digest -> card
    std::vector<ImportEntry> m_entries;
    std::size_t m_looked = 0;
    bool m_saidFull = false;
};

} // namespace

Result<std::vector<ImportEntry>> importCards(const fs::path &from, const skills::CardStore &store,
                                             const ImportOptions &options)
{
    std::error_code problem;
    if (!fs::exists(from, problem))
        return fail(ErrorCode::NotFound, "There is no '" + from.string() + "'.");
    for (const std::string *text : {&options.origin, &options.license}) {
        if (!isUtf8Text(*text) || text->size() > 1000)
            return fail(ErrorCode::InvalidInput,
                        "The origin and the licence are texts of at most 1000 bytes.");
    }
    const fs::path root = from.lexically_normal();
    return Importer(root.has_filename() ? root : root.parent_path(), store, options).run();
}

} // namespace klineage::interop
