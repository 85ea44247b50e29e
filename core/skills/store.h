// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/skills/card.h"

#include <vector>

namespace klineage::skills {

/// Reads and writes skills/<name>/. Stateless; every write is atomic (card.toml, SKILL.md) or an appended, synced line (logs).
/// Thread-safe across processes by a lock file per card.
class CardStore
{
public:
    explicit CardStore(std::filesystem::path skillsDirectory);

    [[nodiscard]] const std::filesystem::path &directory() const { return m_directory; }
    /// All readable cards, by name; unreadable ones become messages in problems.
    [[nodiscard]] std::vector<CardRecord> readAll(std::vector<Error> *problems = nullptr) const;
    [[nodiscard]] Result<CardRecord> read(const std::string &name) const;

    /// Appends a review event (id and time are filled in) and returns it.
    [[nodiscard]] Result<Review> review(const std::string &name, Review review) const;
    /// Appends a Revert of the given event. Reverting an Edit also restores the card.toml it replaced (as a new revision).
    [[nodiscard]] Result<Review> revert(const std::string &name, const std::string &reviewId,
                                        const std::string &author) const;
    /// Saves an edited card as revision + 1 with an Edit event, and renews SKILL.md. ErrorCode::Conflict when the revision on
    /// disk is not card.revision. A card that is as it was gets no event; a stale SKILL.md is renewed all the same.
    [[nodiscard]] Result<CardRecord> save(const Card &card, const std::string &author,
                                          const std::string &reason) const;
    /// Creates a new card folder; fails when it exists.
    [[nodiscard]] Result<CardRecord> create(const Card &card, std::string_view carrier,
                                            std::string_view buildingBlock = {}) const;
    [[nodiscard]] Status appendVerification(const std::string &name, const Verification &verification) const;

private:
    std::filesystem::path m_directory;
};

} // namespace klineage::skills
