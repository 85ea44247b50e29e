// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractListModel>

#include <functional>
#include <vector>

namespace klineage::ui {

/// Something that can be gone to or done by name.
struct QuickEntry {
    QString title;
    QString detail; ///< dim, behind the title; searched too
    QString key;    ///< at the right: a shortcut, or a figure
    QString icon;
    std::function<void()> act;
};

/// The entries that match a pattern, best first. An empty pattern shows all in their own order.
class QuickOpenModel : public QAbstractListModel
{
    Q_OBJECT

public:
    enum Role { DetailRole = Qt::UserRole, KeyRole, IconRole };

    using QAbstractListModel::QAbstractListModel;

    void setEntries(std::vector<QuickEntry> entries);
    void setPattern(const QString &pattern);
    [[nodiscard]] const QuickEntry &entry(int row) const;
    [[nodiscard]] const QString &pattern() const { return m_pattern; }

    int rowCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role) const override;

    static constexpr int maxRows = 200; ///< nobody reads further

private:
    void rank();
    [[nodiscard]] int nearnessOf(const QuickEntry &entry) const;

    std::vector<QuickEntry> m_entries;
    std::vector<int> m_shown; ///< indexes into m_entries
    QString m_pattern;
};

} // namespace klineage::ui
