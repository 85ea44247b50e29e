// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QSortFilterProxyModel>

namespace klineage::ui {

/// Keeps the rows whose text (filterRole) matches a pattern as fuzzyMatch() says, with their ancestors. A row that matches keeps
/// its whole subtree. The order of the source stays.
class FuzzyFilter : public QSortFilterProxyModel
{
    Q_OBJECT

public:
    explicit FuzzyFilter(QObject *parent = nullptr);

    void setPattern(const QString &pattern);
    [[nodiscard]] const QString &pattern() const { return m_pattern; }

protected:
    bool filterAcceptsRow(int row, const QModelIndex &parent) const override;

private:
    QString m_pattern;
};

} // namespace klineage::ui
