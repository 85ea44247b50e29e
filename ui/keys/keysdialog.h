// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>

#include <vector>

class QGridLayout;
class QLabel;
class QLineEdit;
class QPushButton;

namespace klineage::ui {

class KeyRing;

/// The API keys of the providers: whether one is stored, set one, remove one. A key that was stored is never shown.
class KeysDialog : public QDialog
{
    Q_OBJECT

public:
    explicit KeysDialog(KeyRing *keys, QWidget *parent = nullptr);

    struct Row {
        QString provider;
        QLabel *state;
        QLineEdit *field;
        QPushButton *store;
        QPushButton *remove;
    };
    [[nodiscard]] const std::vector<Row> &rows() const { return m_rows; }
    [[nodiscard]] QLabel *note() const { return m_note; }

private:
    void addRow(QGridLayout *grid, const QString &provider);
    void refresh();
    void storeKey(const Row &row);

    KeyRing *m_keys;
    std::vector<Row> m_rows;
    QLabel *m_note;
};

} // namespace klineage::ui
