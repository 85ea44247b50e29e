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
            return row.kind == lineage::TableRow::Kind::State && row.elsewhere.empty() && has(row);
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
        if (lineage.states.size() == 1) { // a beginning: what it lacks is no failure
            node.tooltip = libraryText("%1. The lineage has this state alone: its root.").arg(node.tooltip);
            node.value = libraryText("%1 alone").arg(text(compared->id));
            node.valueTone = Tone::Neutral;
        }
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

/// The device that runs the lineage's kernels; empty: there is none here, or nobody has asked yet.
QString deviceFor(const lineage::Lineage &lineage, const std::vector<gate::DeviceInfo> &devices)
{
    const auto found =
        std::find_if(devices.begin(), devices.end(), [&lineage](const gate::DeviceInfo &device) {
            return device.available && device.kind == lineage.surface->device
                   && (device.platform.empty() || device.platform == lineage.platform);
        });
    return found == devices.end() ? QString()
           : found->name.empty()  ? QString::fromUtf8(kernel::traitsOf(found->kind).name)
                                  : text(found->name);
}

void addWorkload(Node &section, const workload::Workload &workload)
{
    Node *row = section.add(Kind::Workload, text(workload.name), text(workload.name));
    row->tooltip = text(workload.title);
    row->search = text(workload.name + " " + workload.title).toLower();
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

void addWorkloads(Node &root, const Workspace &workspace, const std::vector<gate::DeviceInfo> &devices)
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
        row->runsHere = deviceFor(lineage, devices);
        if (!row->runsHere.isEmpty())
            row->tooltip += QLatin1Char('\n') + libraryText("● Runs on this machine: %1").arg(row->runsHere);
        row->search = text(lineage.workload + " " + lineage.folder() + " " + lineage.title).toLower();
    }
}

/// The section a card belongs to: what a person still has to do comes first.
enum class Group { ToReview, NeedsEvidence, Approved, Rejected, Retired };

Group groupOf(const skills::CardRecord &record)
{
    if (record.card.retired)
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

skills::Life lifeOf(const CardFacets &facets)
{
    const std::string &word = facets.of(Facet::Life).front();
    return word == skills::toString(skills::Life::Admitted)  ? skills::Life::Admitted
           : word == skills::toString(skills::Life::Retired) ? skills::Life::Retired
                                                             : skills::Life::Hypothesis;
}

void addCards(Node &root, const Workspace &workspace, LibraryModel::FacetCache &facets)
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
    const auto now = std::chrono::system_clock::now();
    std::vector<std::pair<const skills::CardRecord *, Group>> cards;
    for (const skills::CardRecord &record : workspace.cards)
        cards.emplace_back(&record, groupOf(record));
    for (const Section &wanted : sections) {
        Node *section = nullptr;
        for (const auto &[card, group] : cards) {
            if (group != wanted.group)
                continue;
            const skills::CardRecord &record = *card;
            if (!section)
                section = root.add(Kind::Section, QLatin1String(wanted.key), wanted.title);
            Node *row = section->add(Kind::Card, text(record.card.name), text(record.card.name));
            row->viewedKey = Viewed::cardKey(row->key, record.card.revision);
            row->facets = facets.facetsOf(workspace, record);
            row->facets.of(Facet::Age) = {ageWord(row->facets.newest, now)};
            row->chip = chipOf(group == Group::Rejected ? statusStyle(skills::ReviewVerdict::Reject)
                                                        : statusStyle(lifeOf(row->facets)));
            row->tooltip = text(record.card.intent.text);
            row->search =
                QStringList{text(record.card.name + " " + record.card.category + " " + record.card.locus),
                            row->chip.text, wanted.search, joined(record.card.scope.platforms),
                            joined(record.card.scope.cases)}
                    .join(QLatin1Char(' '))
                    .toLower();
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

void LibraryModel::FacetCache::setWorkspace(const Workspace &workspace)
{
    m_recorded = workspace.workloads.size();
    for (const lineage::Lineage &lineage : workspace.lineages)
        m_recorded += lineage.trials.size() + lineage.transitions.size() + lineage.attempts.size();
}

const CardFacets &LibraryModel::FacetCache::facetsOf(const Workspace &workspace,
                                                     const skills::CardRecord &record)
{
    const Stamp stamp{static_cast<std::size_t>(record.card.revision),
                      record.reviews.size(),
                      record.verifications.size(),
                      record.carrier.size(),
                      record.buildingBlock.size(),
                      m_recorded};
    Held &held = m_held[text(record.card.name)];
    if (held.stamp != stamp)
        held = {stamp, klineage::facetsOf(workspace, record)};
    return held.facets;
}

std::unique_ptr<Node> makeLibrary(const Workspace &workspace, LibraryModel::FacetCache &facets,
                                  const std::vector<gate::DeviceInfo> &devices)
{
    auto root = std::make_unique<Node>();
    facets.setWorkspace(workspace);
    addWorkloads(*root, workspace, devices);
    addCards(*root, workspace, facets);
    addWorkloadsWithoutLineage(*root, workspace);
    return root;
}

} // namespace klineage::ui
