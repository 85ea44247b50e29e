// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/run/lift/namednumbers.h"
#include "core/run/lift/quantities.h"
#include "core/skills/card.h"
#include "core/workspace/workspace.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace klineage::run {

/// What a trial measured, in the units of Quantity: the numbers that a claim citing it may name.
struct Figures {
    std::vector<double> factors;
    std::vector<double> percents;
    std::vector<double> times; ///< ns
    std::vector<double> rates;

    [[nodiscard]] bool hold(const Quantity &quantity) const; ///< within its rounding
};

/// Transitions of one category with similar locus and effect, and everything that the author is shown of them.
struct LiftGroup {
    std::string category;
    std::string locus;                           ///< of the first transition
    std::string signature;                       ///< "a large gain; instructions, registers"
    std::string language;                        ///< "opencl", of the first transition
    std::string transitions;                     ///< for the prompt
    std::string attempts;                        ///< for the prompt
    std::vector<skills::Citation> evidence;      ///< the transitions
    std::vector<skills::Citation> rejected;      ///< the attempts
    std::map<skills::Citation, Figures> figures; ///< of everything that may be cited, trials included
    std::map<std::string, std::vector<skills::Measured>>
        measured; ///< what each trial that is shown was compared with, by its id
    std::map<std::string, NamedNumbers>
        numbers;          ///< of the candidate of each trial that is shown, by its id; none: not known
    std::string stronger; ///< for the prompt: the kernel that the first transition ends in, whole
    skills::Scope scope;  ///< of the transitions: what a card of them claims
};

/// What duplicates are told by, by the author and by their words.
struct KnownCard {
    std::string name;
    std::string language; ///< "opencl", "cuda"; of the scope, the first of several
    std::string category;
    std::string locus;
    std::string intent;
};

/// All that a lift takes from the workspace when it begins.
struct LiftInput {
    std::vector<LiftGroup> groups;
    std::vector<KnownCard> library;
};

/// The lineages of a lift's subject, "sgemm/pocl, softmax/pocl"; none: all of them.
[[nodiscard]] std::vector<std::string> liftedLineages(const std::string &subject);
/// The transitions of these lineages (all when empty), in groups, in the order of the lineages. Groups whose every transition some card
/// cites already are left out unless again.
[[nodiscard]] LiftInput gatherGroups(const Workspace &workspace, const std::vector<std::string> &lineages,
                                     bool again);

[[nodiscard]] std::string writeLiftInput(const LiftInput &input); ///< JSON
[[nodiscard]] Result<LiftInput> parseLiftInput(const std::string &text);

/// The words of a text that tell texts apart: lower case, without plural endings and common words.
[[nodiscard]] std::set<std::string> wordsOf(std::string_view text);
/// Shared words over all words, 0 … 1; 1 for two texts without any.
[[nodiscard]] double similarity(const std::set<std::string> &a, const std::set<std::string> &b);

inline constexpr double similarLocus = 0.5;
inline constexpr double similarIntent = 0.5;

} // namespace klineage::run
