// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/skills/revisions.h"

#include "core/files/formatnumber.h"

#include <utility>

namespace klineage::skills {

std::vector<Revision> revisionsOf(const CardRecord &record)
{
    // An event that changed the text has the one it replaced, and made the revision that it names.
    std::vector<Revision> revisions;
    Revision next;
    const files::PassedOver passedOver; // the notices of the card say it
    for (const Review &event : record.reviews) {
        if (event.before.empty())
            continue;
        const Result<Card> card = parseCard(event.before, "card.toml");
        next.number = card ? card->revision : event.cardRevision - 1;
        next.text = card ? writeCard(*card) : event.before;
        revisions.push_back(std::move(next));
        next = {event.cardRevision, event.time, event.author, event.reason, {}};
    }
    next.number = record.card.revision;
    next.text = writeCard(record.card);
    revisions.push_back(std::move(next));
    return revisions;
}

} // namespace klineage::skills
