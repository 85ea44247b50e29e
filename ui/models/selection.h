// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QString>
#include <QStringList>

namespace klineage::ui {

/// What the window looks at, synced by all panels. Pure state: setters that change nothing emit nothing.
/// A row id is a state ("K03"), an attempt ("R03a") or a branch ("trial:<id>").
class Selection : public QObject
{
    Q_OBJECT

public:
    using QObject::QObject;

    [[nodiscard]] QString lineageKey() const { return m_lineageKey; }
    [[nodiscard]] QString row() const { return m_row; } ///< right side of the diff
    [[nodiscard]] QString baseline() const
    {
        return m_baseline;
    } ///< pinned state; empty: K0 for totals, the parent for steps
    [[nodiscard]] QString card() const { return m_card; }
    /// Cards that were selected together, which a verdict goes to instead of to card(); empty: there are none.
    [[nodiscard]] QStringList markedCards() const { return m_markedCards; }
    [[nodiscard]] QString hovered() const { return m_hovered; } ///< until another row is selected

    void setLineage(const QString &key, const QString &row); ///< clears the baseline when the lineage changes
    /// As setLineage(), for the sake of the selected card: who follows the row with its own card does not.
    void lookUp(const QString &key, const QString &row);
    [[nodiscard]] bool isLookingUp() const { return m_isLookingUp; }
    void setRow(const QString &row);
    void setBaseline(const QString &state);
    void setCard(const QString &name);
    void setMarkedCards(const QStringList &names);
    void setHovered(const QString &row);

signals:
    void lineageChanged(const QString &key);
    void rowChanged(const QString &row);
    void baselineChanged(const QString &state);
    void cardChanged(const QString &name);
    void markedCardsChanged();
    void hoveredChanged(const QString &row);

private:
    QString m_lineageKey;
    QString m_row;
    QString m_baseline;
    QString m_card;
    QStringList m_markedCards;
    QString m_hovered;
    bool m_isLookingUp = false;
};

} // namespace klineage::ui
