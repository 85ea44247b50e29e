// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/lift/storecard.h"
#include "core/skills/relations.h"
#include "ui/cards/cardhtml.h"
#include "ui/cards/cardmarkup.h"

#include <QStringList>

namespace klineage::ui {

namespace {

using RelationKind = skills::Relation::Kind;

QString titleOf(RelationKind kind)
{
    switch (kind) {
    case RelationKind::Requires:
        return markup::tr("Requires");
    case RelationKind::Provides:
        return markup::tr("Provides");
    case RelationKind::Conflicts:
        return markup::tr("Conflicts with");
    case RelationKind::ConflictedBy:
        return markup::tr("What conflicts with it");
    }
    return {};
}

QString noCardText(RelationKind kind)
{
    switch (kind) {
    case RelationKind::Requires:
        return markup::tr("no card provides it: the code has to have it");
    case RelationKind::Provides:
        return markup::tr("no card requires it");
    default:
        return markup::tr("no card provides it");
    }
}

QString relationLine(const skills::Relation &relation)
{
    QStringList links;
    for (const std::string &card : relation.cards)
        links << markup::cardLink(QString::fromStdString(card));
    const QString feature =
        markup::tr("%1 at %2")
            .arg(markup::escaped(relation.feature.name), markup::escaped(relation.feature.locus));
    return markup::paragraph(feature + QStringLiteral(" · ")
                             + (links.isEmpty()
                                    ? markup::coloured(noCardText(relation.kind), Theme::current().dim)
                                    : links.join(QStringLiteral(", "))));
}

/// What a lift would merge it with, and what comes nearest.
QString alikeHtml(const skills::Card &card, const Workspace &workspace)
{
    constexpr std::size_t mostNamed = 3;
    std::vector<run::KnownCard> others;
    for (const skills::CardRecord &record : workspace.cards) {
        if (record.card.name != card.name && !record.card.retired)
            others.push_back(
                {record.card.name, {}, record.card.category, record.card.locus, record.card.intent.text});
    }
    std::vector<run::AlikeCard> alike = run::alikeCards(card, others);
    QString html =
        markup::label(markup::tr("Near-duplicates: same category, words of locus and intent alike"));
    if (alike.empty())
        return html
               + markup::paragraph(
                   markup::tr("No other card is of the category %1.").arg(markup::escaped(card.category)));
    alike.resize(std::min(alike.size(), mostNamed));
    for (const run::AlikeCard &other : alike)
        html += markup::paragraph(
            markup::tr("%1 · %2 % of the intent's words, %3 % of the locus' are in both: %4")
                .arg(markup::cardLink(QString::fromStdString(other.name)))
                .arg(qRound(100 * other.intent))
                .arg(qRound(100 * other.locus))
                .arg(other.saysTheSame() ? markup::coloured(
                         markup::tr("≈ says the same; a lift would merge them"), Theme::current().warn)
                                         : markup::tr("another step")));
    return html;
}

} // namespace

QString relationsHtml(const skills::CardRecord &record, const Workspace &workspace)
{
    QString html;
    const auto relations = skills::relationsOf(workspace.cards, record.card);
    for (const RelationKind kind : {RelationKind::Requires, RelationKind::Provides, RelationKind::Conflicts,
                                    RelationKind::ConflictedBy}) {
        QString lines;
        for (const skills::Relation &relation : relations)
            lines += relation.kind == kind ? relationLine(relation) : QString();
        if (!lines.isEmpty() || kind != RelationKind::ConflictedBy)
            html += markup::label(titleOf(kind))
                    + (lines.isEmpty() ? markup::paragraph(QStringLiteral("–")) : lines);
    }
    return html + alikeHtml(record.card, workspace);
}

} // namespace klineage::ui
