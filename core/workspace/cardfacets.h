// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/workspace/workspace.h"

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace klineage {

/// What cards are told apart by.
enum class Facet { Life, Lint, Verdict, Viewed, Age, Platform, Needs, Family, By };
inline constexpr std::array allFacets{Facet::Life,   Facet::Lint,   Facet::Verdict,
                                      Facet::Viewed, Facet::Age,    Facet::Platform,
                                      Facet::Needs,  Facet::Family, Facet::By};
[[nodiscard]] const char *toString(Facet facet); ///< life lint verdict viewed age platform needs family by
[[nodiscard]] std::optional<Facet> facetFromString(std::string_view word);

/// A card's words under each facet, in lower case and without blanks; one may have several, or none.
///
/// | facet | words |
/// |---|---|
/// | life | hypothesis admitted retired; and imported, and rejected by its standing review |
/// | lint | error, else warning, else clean |
/// | verdict | none approved rejected evidence: the standing review |
/// | viewed | yes no: a person's, filled in by who knows it |
/// | age | today week month older: of the newest event in its logs; undated without any |
/// | platform | of the claimed scope and of what verified it |
/// | needs | capabilities of the device |
/// | family | of the operator: the card's own, else those of the workloads in its scope |
/// | by | who stands in its history: lift, gate, probe, or a person ("ada-lovelace") |
struct CardFacets {
    std::array<std::vector<std::string>, allFacets.size()> words;
    std::string newest; ///< time of the newest event in its logs, ISO 8601; empty without any

    [[nodiscard]] std::vector<std::string> &of(Facet facet) { return words[static_cast<std::size_t>(facet)]; }
    [[nodiscard]] const std::vector<std::string> &of(Facet facet) const
    {
        return words[static_cast<std::size_t>(facet)];
    }
};

/// All but `viewed` and `age`. Reads no files.
[[nodiscard]] CardFacets facetsOf(const Workspace &workspace, const skills::CardRecord &record);
/// The word for the time of an event, seen from `now`.
[[nodiscard]] std::string ageWord(const std::string &time, std::chrono::system_clock::time_point now);

/// What is looked for: words, and words under facets. "life:hypothesis,admitted lint:error row registers"
struct CardQuery {
    std::array<std::vector<std::string>, allFacets.size()> wanted; ///< by facet; empty: any
    std::string text;                                              ///< the rest, words apart by one space
    std::vector<std::string>
        unknown; ///< "lfe:error": what looks like a facet and is none; is in the text too

    [[nodiscard]] const std::vector<std::string> &of(Facet facet) const
    {
        return wanted[static_cast<std::size_t>(facet)];
    }
    [[nodiscard]] bool hasFacets() const;
    /// Of each facet that something is wanted of, one of the card's words begins with one of the wanted ones.
    [[nodiscard]] bool accepts(const CardFacets &facets) const;
    [[nodiscard]] bool accepts(const CardFacets &facets, Facet facet) const;
};

/// Of several words under a facet one has to fit, apart by commas or said one after the other. "life:" alone wants nothing yet.
[[nodiscard]] CardQuery parseCardQuery(std::string_view text);

/// The text of a query with `word` under the facet added, or taken out where it is there; the rest stays as it was typed.
[[nodiscard]] std::string toggled(std::string_view text, Facet facet, std::string_view word);

} // namespace klineage
