// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QSortFilterProxyModel>
#include <QStringList>

namespace klineage::ui {

/// Keeps the rows whose text (filterRole) matches a pattern as fuzzyMatch() says, with their ancestors. A row that matches keeps
/// its whole subtree. Where some rows have the words of the pattern as they were typed, only those are kept. The order of the source
/// stays.
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
    void findLiteralHits();
    [[nodiscard]] bool hasWords(const QString &text) const;

    QString m_pattern;
    QStringList m_words;
    bool m_hasLiteralHits = false;
};

} // namespace klineage::ui
