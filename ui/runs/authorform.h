// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/run/journal.h"

#include <QWidget>

class QComboBox;
class QDoubleSpinBox;
class QFormLayout;
class QLabel;
class QLineEdit;

namespace klineage::ui {

class KeyRing;

/// Who is asked, and for how much at most: the fields of an author that answers a single question. Only those that it has are there.
class AuthorForm : public QWidget
{
    Q_OBJECT

public:
    /// keys is not owned, and may be nullptr: keys then come from the environment.
    explicit AuthorForm(KeyRing *keys, QWidget *parent = nullptr);

    /// Of Settings: provider, model, author (empty values left out) and capDollars.
    [[nodiscard]] run::Settings author() const;
    void setAuthor(const run::Settings &settings);
    /// What is missing, a sentence; empty: it can be asked.
    [[nodiscard]] QString problem() const;

signals:
    void changed();

private:
    void showFields();

    KeyRing *m_keys;
    QFormLayout *m_form;
    QComboBox *m_provider;
    QLineEdit *m_model;
    QLineEdit *m_baseUrl;
    QLabel *m_key;
    QLineEdit *m_command;
    QLineEdit *m_transcript;
    QDoubleSpinBox *m_cap;
};

} // namespace klineage::ui
