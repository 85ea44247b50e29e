// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/librarymodel.h"

#include "ui/models/librarynode.h"

namespace klineage::ui {

namespace {

using Node = LibraryModel::Node;

/// Of rows that are called alike the first one counts.
void addByKey(const Node &node, std::array<QHash<QString, const Node *>, 4> &byKey)
{
    for (const auto &child : node.children) {
        const Node *&held = byKey[static_cast<std::size_t>(child->kind)][child->key];
        held = held ? held : child.get();
        addByKey(*child, byKey);
    }
}

} // namespace

LibraryModel::LibraryModel(QObject *parent)
    : QAbstractItemModel(parent)
    , m_root(std::make_unique<Node>())
    , m_facets(std::make_unique<FacetCache>())
{}

LibraryModel::~LibraryModel() = default;

void LibraryModel::refresh(const Workspace &workspace)
{
    std::unique_ptr<Node> fresh = makeLibrary(workspace, *m_facets, m_devices);
    if (!fresh->hasShapeOf(*m_root)) {
        beginResetModel();
        m_root = std::move(fresh);
        m_byKey = {};
        addByKey(*m_root, m_byKey);
        endResetModel();
        return;
    }
    // Indexes point at nodes, so the nodes stay and take the new texts.
    const auto update = [this](auto &self, Node &held, Node &updated) -> void {
        held.title = updated.title;
        held.value = updated.value;
        held.valueTone = updated.valueTone;
        held.search = updated.search;
        held.tooltip = updated.tooltip;
        held.viewedKey = updated.viewedKey;
        held.runsHere = updated.runsHere;
        held.facets = updated.facets;
        held.chip = updated.chip;
        for (std::size_t i = 0; i < held.children.size(); ++i)
            self(self, *held.children[i], *updated.children[i]);
        if (!held.children.empty())
            emit dataChanged(indexOf(held.children.front().get()), indexOf(held.children.back().get()));
    };
    update(update, *m_root, *fresh);
}

QModelIndex LibraryModel::find(Kind kind, const QString &key) const
{
    const Node *node = m_byKey[static_cast<std::size_t>(kind)].value(key);
    return node ? indexOf(node) : QModelIndex();
}

const QString &LibraryModel::searchText(const QModelIndex &index) const
{
    return static_cast<const Node *>(index.constInternalPointer())->search;
}

const CardFacets *LibraryModel::facets(const QModelIndex &index) const
{
    const auto *node = static_cast<const Node *>(index.constInternalPointer());
    return node && node->kind == Kind::Card ? &node->facets : nullptr;
}

QModelIndex LibraryModel::indexOf(const Node *node) const
{
    return createIndex(node->row, 0, node);
}

QModelIndex LibraryModel::index(int row, int column, const QModelIndex &parent) const
{
    if (!hasIndex(row, column, parent))
        return {};
    const Node *node =
        parent.isValid() ? static_cast<const Node *>(parent.constInternalPointer()) : m_root.get();
    return createIndex(row, column, node->children[static_cast<std::size_t>(row)].get());
}

QModelIndex LibraryModel::parent(const QModelIndex &child) const
{
    if (!child.isValid())
        return {};
    const Node *parent = static_cast<const Node *>(child.constInternalPointer())->parent;
    return parent == m_root.get() ? QModelIndex() : indexOf(parent);
}

int LibraryModel::rowCount(const QModelIndex &parent) const
{
    if (parent.column() > 0)
        return 0;
    const Node *node =
        parent.isValid() ? static_cast<const Node *>(parent.constInternalPointer()) : m_root.get();
    return static_cast<int>(node->children.size());
}

int LibraryModel::columnCount(const QModelIndex &) const
{
    return 1;
}

QVariant LibraryModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid() || !checkIndex(index))
        return {};
    const auto *node = static_cast<const Node *>(index.constInternalPointer());
    switch (role) {
    case Qt::DisplayRole:
    case Qt::AccessibleTextRole:
        return node->title;
    case Qt::ToolTipRole:
        return node->tooltip;
    case Qt::AccessibleDescriptionRole:
        if (!node->runsHere.isEmpty())
            return tr("%1, runs on this machine: %2").arg(node->value, node->runsHere);
        return node->chip.text.isEmpty() ? node->value : node->chip.text;
    case KindRole:
        return static_cast<int>(node->kind);
    case KeyRole:
        return node->key;
    case ValueRole:
        return node->value;
    case ValueToneRole:
        return static_cast<int>(node->valueTone);
    case ViewedKeyRole:
        return node->viewedKey;
    case RunsHereRole:
        return node->runsHere;
    case ChipRole:
        return QVariant::fromValue(node->chip);
    default:
        return {};
    }
}

Qt::ItemFlags LibraryModel::flags(const QModelIndex &index) const
{
    if (!index.isValid())
        return Qt::NoItemFlags;
    const auto *node = static_cast<const Node *>(index.constInternalPointer());
    const Qt::ItemFlags flags = Qt::ItemIsEnabled;
    return node->kind == Kind::Card      ? cardFlags
           : node->kind == Kind::Section ? flags
                                         : flags | Qt::ItemIsSelectable;
}

} // namespace klineage::ui
