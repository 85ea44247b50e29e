// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/interop/cards/importcards.h"

#include "core/files/atomicfile.h"
#include "core/files/sha256.h"
#include "core/files/utf8text.h"
#include "core/interop/folderimport.h"
#include "core/interop/license.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <set>

namespace klineage::interop {

namespace {

namespace fs = std::filesystem;

constexpr FolderImport::Limits cardLimits = {
    .depth = 6,
    .tooDeep = "It lies more than six folders deep.",
    .listed = 19'999,
    .tooMany = "More than 20000 entries; what comes after them was not looked at."};

std::string loweredName(std::string text)
{
    std::transform(text.begin(), text.end(), text.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    return text;
}

class CardImport : public FolderImport
{
public:
    CardImport(const fs::path &root, const skills::CardStore &store, const ImportOptions &options)
        : FolderImport(root, cardLimits)
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
        const fs::path folder = fs::is_directory(root(), ignored) ? root() : root().parent_path();
        m_library.origin = m_options.origin.empty()
                               ? fs::absolute(root(), ignored).lexically_normal().filename().string()
                               : m_options.origin;
        if (m_library.origin.empty() || !files::isUtf8Text(m_library.origin))
            m_library.origin = "a folder";
        m_library.license = m_options.license.empty() ? licenseIn(folder) : m_options.license;
        if (m_library.license.empty())
            m_library.license = "unknown";
        return walk();
    }

private:
    /// A folder is a card when it has a SKILL.md, and else the folder of such folders.
    bool takeWhole(const fs::path &folder, const std::vector<fs::directory_entry> &entries) override
    {
        const auto skill = std::find_if(entries.begin(), entries.end(), [](const fs::directory_entry &entry) {
            return loweredName(entry.path().filename().string()) == "skill.md";
        });
        if (skill == entries.end())
            return false;
        takeSkill(skill->path(), folder);
        return true;
    }

    void foundNothing(const fs::path &folder) override
    {
        std::error_code ignored;
        const bool isOwn = fs::exists(folder / "card.toml", ignored);
        skip(shown(folder),
             isOwn ? "It has a card.toml, so it is a card of this program: copy its folder into skills/."
                   : "It has no SKILL.md and no JSON file.");
    }

    void takeFile(const fs::path &file) override
    {
        if (loweredName(file.extension().string()) == ".json")
            takeJson(file);
        else if (file == root())
            takeSkill(file, file.parent_path());
    }

    void takeSkill(const fs::path &file, const fs::path &folder)
    {
        const std::string source = shown(folder == root() ? file : folder);
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
                entry.name = card.name;
                m_names.insert(card.name);
                m_known[card.imported->sha256] = card.name;
            } else {
                entry.reason = stored.error().message;
            }
        }
        add(std::move(entry));
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

    const skills::CardStore &m_store;
    const ImportOptions &m_options;
    ForeignLibrary m_library;
    std::set<std::string> m_names;
    std::map<std::string, std::string> m_known; ///< digest -> card
};

} // namespace

Result<std::vector<ImportEntry>> importCards(const fs::path &from, const skills::CardStore &store,
                                             const ImportOptions &options)
{
    std::error_code problem;
    if (!fs::exists(from, problem))
        return fail(ErrorCode::NotFound, "There is no '" + from.string() + "'.");
    for (const std::string *text : {&options.origin, &options.license}) {
        if (!files::isUtf8Text(*text) || text->size() > 1000)
            return fail(ErrorCode::InvalidInput,
                        "The origin and the licence are texts of at most 1000 bytes.");
    }
    const fs::path root = from.lexically_normal();
    return CardImport(root.has_filename() ? root : root.parent_path(), store, options).run();
}

} // namespace klineage::interop
