// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/importreport.h"

#include "core/base/listtext.h"

#include <nlohmann/json.hpp>

#include <cstdio>

namespace klineage::cli {

using nlohmann::json;

namespace {

void printEntry(const interop::ImportEntry &entry, bool dryRun)
{
    if (!entry.name.empty())
        std::printf("%s %s from %s\n", dryRun ? "would import" : "imported", entry.name.c_str(),
                    entry.source.c_str());
    else
        std::printf("skipped %s: %s\n", entry.source.c_str(), entry.reason.c_str());
    for (const std::string &note : entry.notes)
        std::printf("  note: %s\n", note.c_str());
}

} // namespace

int printImport(const Session &session, const std::vector<interop::ImportEntry> &entries,
                const ImportWords &words)
{
    json out{{"entries", json::array()}};
    int imported = 0;
    int there = 0;
    for (const interop::ImportEntry &entry : entries) {
        imported += entry.name.empty() ? 0 : 1;
        there += entry.isThere ? 1 : 0;
        out["entries"].push_back({{"source", entry.source},
                                  {words.key, entry.name.empty() ? json() : json(entry.name)},
                                  {"reason", entry.reason.empty() ? json() : json(entry.reason)},
                                  {"notes", entry.notes}});
        for (const interop::ImportedRow &row : entry.rows)
            out["entries"].back()["rows"].push_back({{"id", row.id},
                                                     {"kind", row.isState ? "state" : "attempt"},
                                                     {"source", row.source},
                                                     {"text", row.text}});
        if (!session.json())
            printEntry(entry, words.dryRun);
    }
    const int skipped = static_cast<int>(entries.size()) - imported;
    out["imported"] = imported;
    out["skipped"] = skipped;
    const bool goesOn = imported > 0 && !words.dryRun && !words.next.empty();
    if (goesOn)
        out["next"] = words.next;
    if (session.json())
        session.print(out);
    else
        std::printf("%d imported%s, %d skipped.\n", imported, words.as, skipped);
    if (goesOn && !session.json())
        std::printf("Next: %s\n", joined(words.next, " && ").c_str());
    return imported + there > 0 ? exitOk : exitNegative;
}

} // namespace klineage::cli
