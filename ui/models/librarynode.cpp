// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/librarynode.h"

#include "core/lineage/table.h"
#include "core/workspace/workspace.h"
#include "ui/models/lineagerow.h"
#include "ui/models/viewed.h"
#include "ui/style/format.h"

#include <QCoreApplication>
#include <QStringList>

#include <algorithm>
#include <array>

namespace klineage::ui {

namespace {

using Node = LibraryModel::Node;
using Kind = LibraryModel::Kind;

QString libraryText(const char *text)
{
    return QCoreApplication::translate("klineage::ui::LibraryModel", text);
}

QString text(const std::string &value)
{
    return QString::fromStdString(value);
}

QString joined(const std::vector<std::string> &values)
{
    QStringList words;
    for (const std::string &value : values)
        words << text(value);
    return words.join(QLatin1Char(' '));
}

/// What the lineage has come to: the speedup of its strongest state that was timed beside a reference (rows come strongest first), of that
/// state's fastest one; to K0 where there is none. Not the largest figure of all states, which may be against a slower reference.
void fillBest(Node &node, const lineage::Lineage &lineage)
{
    const std::vector<lineage::TableRow> rows = lineageTable(lineage);
    const auto strongest = [&](const auto &has) {
        return std::find_if(rows.begin(), rows.end(), [&](const lineage::TableRow &row) {
            return row.kind == lineage::TableRow::Kind::State && has(row);
        });
    };
    const auto compared = strongest([](const auto &row) { return row.speedupToReference.has_value(); });
    const auto timed = strongest([](const auto &row) { return row.speedupToBaseline.has_value(); });
    if (compared != rows.end()) {
        const double speedup = compared->speedupToReference->value;
        node.value = QStringLiteral("%1 %2").arg(formatSpeedup(speedup),
                                                 text(compared->reference).section(QLatin1Char(' '), 0, 0));
        node.valueTone = speedup >= 1 ? Tone::Good : Tone::Neutral;
        node.tooltip = libraryText("%1: %2 of %3 (speedup to its fastest reference, paired)")
                           .arg(text(compared->id), formatSpeedup(speedup), text(compared->reference));
    } else if (timed != rows.end()) {
        node.value = libraryText("≈ %1 K0").arg(formatSpeedup(*timed->speedupToBaseline));
        node.tooltip =
            libraryText("%1: speedup to K0, not paired: the medians of two trials; no reference was timed")
                .arg(text(timed->id));
    } else {
        node.value = libraryText("not gated");
        node.tooltip = libraryText("No state of this lineage has a timed trial");
    }
}

void addWorkload(Node &section, const workload::Workload &workload)
{
    Node *row = section.add(Kind::Workload, text(workload.name), text(workload.name));
    row->tooltip = text(workload.title);
    row->search = text(workload.name + " " + workload.title);
}

bool hasLineage(const workload::Workload &workload, const Workspace &workspace)
{
    return std::any_of(workspace.lineages.begin(), workspace.lineages.end(),
                       [&](const lineage::Lineage &lineage) { return lineage.workload == workload.name; });
}

/// Those that there is nothing to look at in yet come last, after the cards.
void addWorkloadsWithoutLineage(Node &root, const Workspace &workspace)
{
    Node *section = nullptr;
    for (const workload::Workload &workload : workspace.workloads) {
        if (hasLineage(workload, workspace))
            continue;
        if (!section)
            section = root.add(Kind::Section, QStringLiteral("without-lineage"),
                               libraryText("Workloads without a lineage"));
        addWorkload(*section, workload);
    }
    if (section)
        section->value = QString::number(section->children.size());
}

void addWorkloads(Node &root, const Workspace &workspace)
{
    Node *section = root.add(Kind::Section, QStringLiteral("workloads"), libraryText("Workloads"));
    for (const workload::Workload &workload : workspace.workloads) {
        if (hasLineage(workload, workspace))
            addWorkload(*section, workload);
    }
    for (const lineage::Lineage &lineage : workspace.lineages) {
        Node *parent = nullptr;
        for (const auto &row : section->children) {
            if (row->key == text(lineage.workload))
                parent = row.get();
        }
        if (!parent) // a lineage whose workload could not be read is still worth looking at
            parent = section->add(Kind::Workload, text(lineage.workload), text(lineage.workload));
        Node *row = parent->add(Kind::Lineage, text(lineage.key()), lineageLabel(lineage));
        fillBest(*row, lineage);
        row->tooltip = text(lineage.title) + QLatin1Char('\n')
                       + (lineage.states.size() == 1 ? libraryText("1 state")
                                                     : libraryText("%1 states").arg(lineage.states.size()))
                       + QLatin1Char('\n') + row->tooltip;
        row->search = text(lineage.workload + " " + lineage.folder() + " " + lineage.title);
    }
}

/// The section a card belongs to: what a person still has to do comes first.
enum class Group { ToReview, NeedsEvidence, Approved, Rejected, Retired };

Group groupOf(const skills::CardRecord &record)
{
    if (record.life() == skills::Life::Retired)
        return Group::Retired;
    const skills::Review *review = record.standingReview();
    if (!review)
        return Group::ToReview;
    switch (review->verdict) {
    case skills::ReviewVerdict::Approve:
        return Group::Approved;
    case skills::ReviewVerdict::Reject:
        return Group::Rejected;
    case skills::ReviewVerdict::NeedsEvidence:
        return Group::NeedsEvidence;
    default:
        return Group::ToReview;
    }
}

void addCards(Node &root, const Workspace &workspace)
{
    struct Section {
        Group group;
        const char *key;
        QString title;
        QString search; ///< what finds its cards
    };
    const std::array sections = {
        Section{Group::ToReview, "to-review", libraryText("SkillCards to review"), libraryText("to review")},
        Section{Group::NeedsEvidence, "needs-evidence", libraryText("SkillCards that need evidence"),
                libraryText("needs evidence")},
        Section{Group::Approved, "approved", libraryText("Approved SkillCards"), libraryText("approved")},
        Section{Group::Rejected, "rejected", libraryText("Rejected SkillCards"), libraryText("rejected")},
        Section{Group::Retired, "retired", libraryText("Retired SkillCards"), libraryText("retired")},
    };
    for (const Section &wanted : sections) {
        Node *section = nullptr;
        for (const skills::CardRecord &record : workspace.cards) {
            if (groupOf(record) != wanted.group)
                continue;
            if (!section)
                section = root.add(Kind::Section, QLatin1String(wanted.key), wanted.title);
            Node *row = section->add(Kind::Card, text(record.card.name), text(record.card.name));
            row->viewedKey = Viewed::cardKey(row->key, record.card.revision);
            row->chip = chipOf(statusStyle(record.life()));
            row->tooltip = text(record.card.intent.text);
            row->search =
                QStringList{text(record.card.name + " " + record.card.category + " " + record.card.locus),
                            row->chip.text, wanted.search, joined(record.card.scope.platforms),
                            joined(record.card.scope.cases)}
                    .join(QLatin1Char(' '));
        }
        if (section)
            section->value = QString::number(section->children.size());
    }
}

} // namespace

Node *LibraryModel::Node::add(Kind childKind, QString childKey, QString childTitle)
{
    auto child = std::make_unique<Node>();
    child->kind = childKind;
    child->key = std::move(childKey);
    child->title = std::move(childTitle);
    child->parent = this;
    child->row = static_cast<int>(children.size());
    children.push_back(std::move(child));
    return children.back().get();
}

bool LibraryModel::Node::hasShapeOf(const Node &other) const
{
    if (kind != other.kind || key != other.key || children.size() != other.children.size())
        return false;
    for (std::size_t i = 0; i < children.size(); ++i) {
        if (!children[i]->hasShapeOf(*other.children[i]))
            return false;
    }
    return true;
}

std::unique_ptr<Node> makeLibrary(const Workspace &workspace)
{
    auto root = std::make_unique<Node>();
    addWorkloads(*root, workspace);
    addCards(*root, workspace);
    addWorkloadsWithoutLineage(*root, workspace);
    return root;
}

} // namespace klineage::ui
