// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace klineage::skills {

/// The words that cards, lineages and targets meet by: core/skills/vocabulary.toml, a part of the program.
class Vocabulary
{
public:
    enum class Kind { Category, Locus, Capability, Family };
    enum class Ability { Unknown, Has, Lacks };

    [[nodiscard]] static const Vocabulary &instance();

    /// The name that the word stands for; the word itself, in lower case with single spaces, when it is not known.
    [[nodiscard]] std::string canonical(Kind kind, std::string_view word) const;
    [[nodiscard]] bool isKnown(Kind kind, std::string_view word) const; ///< a name or an alias
    [[nodiscard]] std::vector<std::string> names(Kind kind) const;

    /// Whether the platform ("sm90", "pocl") has what a capability names.
    [[nodiscard]] Ability ability(std::string_view platform, std::string_view capability) const;
    /// Families of an operator by the words of its oracle or its tags, sorted; empty: not known.
    [[nodiscard]] std::vector<std::string> familiesOf(const std::vector<std::string> &words) const;
    /// The capabilities that a feature's name speaks of: "tma" of "tma_slabs".
    [[nodiscard]] std::vector<std::string> capabilitiesIn(std::string_view feature) const;
    /// The parts of operators that a feature at its locus speaks of: "exponentials" of "exp2_folded at exp".
    [[nodiscard]] std::vector<std::string> partsIn(std::string_view featureAtLocus) const;
    /// Whether an operator has the part, by the words of its oracle or its tags.
    [[nodiscard]] bool hasPart(const std::vector<std::string> &words, std::string_view part) const;
    /// The features at their loci that a code has which has this one: "shared_tile at k-loop operand load" of
    /// "tma_slabs at global-to-shared copy".
    [[nodiscard]] std::vector<std::string> impliedBy(std::string_view featureAtLocus) const;
    /// Whether the code, without comments, shows the feature by one of its signs.
    [[nodiscard]] bool showsFeature(std::string_view code, std::string_view feature) const;

private:
    Vocabulary();

    struct Platforms {
        std::vector<std::string> having;
        std::vector<std::string> lacking; ///< the kinds that lack it otherwise
    };
    std::map<Kind, std::map<std::string, std::string, std::less<>>> m_words; ///< word -> name
    std::map<std::string, Platforms, std::less<>> m_abilities;
    std::vector<std::pair<std::string, std::set<std::string>>> m_families; ///< name, words of oracles
    struct Part {
        std::vector<std::string> phrases;
        std::set<std::string> oracles;
        std::set<std::string> without; ///< oracles that have one of the words, but not the part
    };
    std::map<std::string, Part, std::less<>> m_parts;
    std::map<std::string, std::vector<std::string>, std::less<>> m_signs; ///< of features
    std::map<std::string, std::vector<std::string>, std::less<>>
        m_implied; ///< by feature at its locus: phrases of what implies it
};

} // namespace klineage::skills
