// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/request.h"
#include "ui/style/chip.h"

#include <QAbstractItemModel>
#include <QHash>

#include <array>
#include <memory>
#include <vector>

namespace klineage {
struct CardFacets;
struct Workspace;
} // namespace klineage

namespace klineage::ui {

/// What is in the workspace, as a tree: a section with workloads and their lineages, and a section of cards for each state of
/// review. Holds texts only; refresh() replaces them. Rows that stay keep their place: only a changed structure resets.
class LibraryModel : public QAbstractItemModel
{
    Q_OBJECT

public:
    enum class Kind { Section, Workload, Lineage, Card };
    enum Role {
        KindRole = Qt::UserRole, ///< int of Kind
        KeyRole,                 ///< lineage key, card or workload name; sections: a stable name
        ValueRole,               ///< short text at the right: "1.02×", "3"
        ValueToneRole,           ///< int of Tone
        ChipRole,                ///< Chip of a card
        ViewedKeyRole,           ///< what Viewed calls it; cards only
        RunsHereRole, ///< device of this machine that runs it, "" where there is none; lineages only
    };

    /// Of an index of this model or of a proxy over it.
    [[nodiscard]] static Kind kindOf(const QModelIndex &index)
    {
        return static_cast<Kind>(index.data(KindRole).toInt());
    }

    static constexpr Qt::ItemFlags cardFlags =
        Qt::ItemIsEnabled | Qt::ItemIsSelectable | Qt::ItemNeverHasChildren;

    explicit LibraryModel(QObject *parent = nullptr);
    ~LibraryModel() override;

    void refresh(const Workspace &workspace);
    /// What this machine has, as its gate says; for the next refresh().
    void setDevices(const std::vector<gate::DeviceInfo> &devices) { m_devices = devices; }
    [[nodiscard]] QModelIndex find(Kind kind, const QString &key) const;
    /// Of a card's index of this model (not of a proxy), else nullptr. `viewed` is left out.
    [[nodiscard]] const CardFacets *facets(const QModelIndex &index) const;
    /// What the filter looks at, in lower case; of an index of this model.
    [[nodiscard]] const QString &searchText(const QModelIndex &index) const;

    QModelIndex index(int row, int column, const QModelIndex &parent = {}) const override;
    QModelIndex parent(const QModelIndex &child) const override;
    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role) const override;
    Qt::ItemFlags flags(const QModelIndex &index) const override;

    struct Node;
    class FacetCache;

private:
    [[nodiscard]] QModelIndex indexOf(const Node *node) const;

    std::unique_ptr<Node> m_root;
    std::array<QHash<QString, const Node *>, 4> m_byKey; ///< all below the root, by kind
    std::unique_ptr<FacetCache> m_facets;
    std::vector<gate::DeviceInfo> m_devices;
};

} // namespace klineage::ui

Q_DECLARE_METATYPE(klineage::ui::Chip)
