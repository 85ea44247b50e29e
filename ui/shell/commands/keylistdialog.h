// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>

class QKeySequenceEdit;
class QLabel;
class QLineEdit;
class QTableView;

namespace klineage::ui {

class ActionRegistry;
class FuzzyFilter;

/// All commands with their keys, under a filter. The key of the chosen one is changed in the field below; a key that is taken is
/// said and moves only on a second press of the button.
class KeyListDialog : public QDialog
{
    Q_OBJECT

public:
    explicit KeyListDialog(ActionRegistry *registry, QWidget *parent = nullptr);

    [[nodiscard]] QTableView *table() const { return m_table; }
    [[nodiscard]] QLineEdit *filterField() const { return m_filterField; }

private:
    void layOut();
    [[nodiscard]] QString currentId() const;
    void showCurrent();
    void assign();
    void useDefault();

    ActionRegistry *m_registry;
    FuzzyFilter *m_filter;
    QLineEdit *m_filterField;
    QTableView *m_table;
    QKeySequenceEdit *m_key;
    QLabel *m_note;
    QString m_confirmedId; ///< the command whose conflict has been shown
};

} // namespace klineage::ui
